#!/bin/sh
# Checks the licenses of all packages that are built from, tests and all, for any system, and
# looks for known vulnerabilities. Fails for a license that is unknown or not allowed, and for
# a vulnerability that the code can reach. Where the database of vulnerabilities cannot be
# reached it says so: then nothing is known about them.
set -u
cd "$(dirname "$0")/.."
# The newest that Go 1.25 can build.
GOVULNCHECK=${GOVULNCHECK:-golang.org/x/vuln/cmd/govulncheck@v1.7.0}
LICENSES=${LICENSES:-github.com/google/go-licenses@v1.6.0}
ALLOWED=MIT,BSD-2-Clause,BSD-3-Clause,Apache-2.0,ISC,MPL-2.0,0BSD,BSL-1.0,Unlicense
GO=${GO:-go}
out=$(mktemp)
bin=$(mktemp -d)
trap 'rm -rf "$out" "$bin"' EXIT

code=0
GOBIN=$bin $GO install "$LICENSES" || exit 1
for system in linux darwin windows; do
	for module in . otel bench web/browsertest webhook/conformance; do
		echo "licenses: module $module for $system"
		if ! (cd "$module" && GOOS=$system CGO_ENABLED=0 "$bin/go-licenses" check --include_tests --ignore github.com/runnel-go --allowed_licenses=$ALLOWED ./...) >"$out" 2>&1; then
			grep -v -e '^W' -e '\.s$' "$out" # assembly cannot be looked into
			code=1
		fi
	done
done

for module in . otel bench web/browsertest webhook/conformance; do
	echo "vulnerabilities: module $module"
	(cd "$module" && $GO run "$GOVULNCHECK" ./...) >"$out" 2>&1
	found=$?
	if [ $found -eq 0 ] && grep -q 'No vulnerabilities found' "$out"; then
		echo "  none known"
	elif grep -q 'fetching vulnerabilities' "$out"; then
		echo "  not checked: database unreachable"
		sed 's/^/  /' "$out" | grep 'fetching vulnerabilities'
	elif grep -q -e 'Your code is affected by' -e '^Vulnerability #' "$out"; then
		cat "$out"
		code=1
	else
		echo "  not checked: govulncheck did not run"
		sed 's/^/  /' "$out" | tail -5
	fi
done
exit $code
