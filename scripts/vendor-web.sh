#!/usr/bin/env bash
# Brings the libraries of the dashboard into web/assets/vendor, in the versions below, by
# npm, and checks that they are what they were. With --check it only compares.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(htm@3.1.1 uplot@1.6.32 preact@10.5.7)

# package/path, name here, SHA-256
files="
htm/preact/standalone.module.js preact-htm.module.js 72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7
htm/LICENSE LICENSE-htm.txt 740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f
preact/LICENSE LICENSE-preact.txt 1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4
uplot/dist/uPlot.iife.min.js uPlot.iife.min.js 19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f
uplot/dist/uPlot.min.css uPlot.min.css df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04
uplot/LICENSE LICENSE-uplot.txt 8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd
"
target=web/assets/vendor

if [ "${1-}" != --check ]; then
	command -v npm >/dev/null || { echo "vendor-web: npm is needed" >&2; exit 1; }
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	for package in "${packages[@]}"; do
		(cd "$dir" && tar -xzf "$(npm pack --silent "$package")" && mv package "${package%@*}")
	done
	while read -r from to _; do
		[ -z "$from" ] || cp "$dir/$from" "$target/$to"
	done <<<"$files"
fi

while read -r _ to sum; do
	[ -z "$to" ] || echo "$sum  $target/$to"
done <<<"$files" | sha256sum --check --quiet
