#!/usr/bin/env bash
# Installs what the browser tests of the dashboard need and the machine lacks: Chromium,
# beside what all tests need. Does nothing where it is there.
set -euo pipefail
"$(dirname "$0")/setup-test.sh"

for name in chromium chromium-browser google-chrome chrome; do
	if command -v "$name" >/dev/null 2>&1; then
		exit 0
	fi
done

give_up() {
	echo "setup-web: the browser tests need Chromium: $1" >&2
	exit 1
}

command -v apt-get >/dev/null 2>&1 || give_up "there is no apt-get here: install it, then try again"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null 2>&1 || give_up "installing it needs root or sudo: run 'apt-get install chromium fonts-dejavu-core' as root, then try again"
	as_root=(sudo)
fi

echo "setup-web: installing chromium from the distribution's packages"
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }
# A list of packages may be out of date, or none may be there yet.
install update -qq || true
install install -y -qq --no-install-recommends chromium fonts-dejavu-core || give_up "apt-get could not install it"
