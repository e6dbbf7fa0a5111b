#!/usr/bin/env bash
# Installs what the tests need and the machine lacks: redis-server, which they
# start themselves, gcc, which Go's race detector needs, and promtool, which plays
# the alerts; with the argument "web" also Chromium, which the browser tests of the
# dashboard need. Does nothing where all are there.
set -euo pipefail

# have reports whether one of some programs is there.
have() { command -v "$@" >/dev/null 2>&1; }

packages=()
have redis-server || packages+=(redis-server)
have gcc || packages+=(gcc libc6-dev)
[ "${1:-}" != web ] || have chromium chromium-browser google-chrome chrome || packages+=(chromium fonts-dejavu-core)
optional=() # without it a test says that it is skipped
if [ "$(id -u)" -eq 0 ] && have apt-get && ! have promtool; then optional+=(prometheus); fi
[ $((${#packages[@]} + ${#optional[@]})) -gt 0 ] || exit 0

give_up() {
	echo "setup-test: the tests need these packages: ${packages[*]}" >&2
	echo "setup-test: $1" >&2
	exit 1
}

have apt-get || give_up "there is no apt-get here: install what corresponds to them, then try again"

as_root=()
if [ "$(id -u)" -ne 0 ]; then
	have sudo || give_up "installing them needs root or sudo: run 'apt-get install ${packages[*]}' as root, then try again"
	as_root=(sudo)
fi

echo "setup-test: installing ${packages[*]} ${optional[*]} from the distribution's packages"
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@"; }
# A list of packages may be out of date, or none may be there yet.
install update -qq || true
if [ ${#packages[@]} -gt 0 ]; then
	install install -y -qq --no-install-recommends "${packages[@]}" || give_up "apt-get could not install them"
fi
if [ ${#optional[@]} -gt 0 ]; then
	install install -y -qq --no-install-recommends "${optional[@]}" || echo "setup-test: without ${optional[*]} some tests are skipped"
fi

# These packages start servers, which are not needed: the tests start their own.
for service in redis-server prometheus; do
	case " ${packages[*]} ${optional[*]} " in
	*" $service "*)
		echo "setup-test: stopping the $service service that its package started"
		if have systemctl && [ -d /run/systemd/system ]; then
			"${as_root[@]}" systemctl stop "$service" || true
		elif have service; then
			"${as_root[@]}" service "$service" stop || true
		fi
		;;
	esac
done
