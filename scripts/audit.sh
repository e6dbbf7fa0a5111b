#!/bin/sh
# Lists the licenses of all dependencies, and looks for known vulnerabilities in what is
# built. Fails for a license that is unknown or not allowed, and for a vulnerability that
# the code can reach. Where the database of vulnerabilities cannot be reached it says so:
# then nothing is known about them.
set -u
cd "$(dirname "$0")/.."
# The newest that Go 1.25 can build.
GOVULNCHECK=${GOVULNCHECK:-golang.org/x/vuln/cmd/govulncheck@v1.7.0}
GO=${GO:-go}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

code=0
$GO run ./internal/licenses || code=1

for module in . otel bench web/browsertest; do
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
