#!/usr/bin/env bash
# Runs the tests that depend on the server on the installed redis-server, on Redis 8.0 and on Valkey
# 8.1, one after the other: scripts, conformance, clusters, security, views, and a play of chaos.
# With the argument "short" only the scripts, and only on the two newer servers. All run even if one
# fails; the last line names the failed ones.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
scripts/setup-test.sh || exit 1
servers=$(scripts/setup-servers.sh) || exit 1

packages=(./internal/redisconn ./internal/store ./internal/test/conformance ./internal/test/cluster ./internal/test/security ./internal/test/views ./internal/inspect)
at_once=1
if [ "${1:-}" = short ]; then
	at_once=2
	packages=(./internal/redisconn ./internal/store)
else
	servers="installed $(dirname "$(command -v redis-server)")
$servers"
fi

failed=()
while read -r name directory; do
	echo "test-servers: $name, $("$directory/redis-server" --version)"
	# One package at a time where some have leases of a second.
	if ! PATH="$directory:$PATH" "$go" test -count 1 -vet off -timeout 25m -p "$at_once" "${packages[@]}"; then
		failed+=("$name")
	elif [ "${1:-}" != short ] && ! PATH="$directory:$PATH" RUNNEL_CHAOS_DURATION=30s "$go" test -count 1 -vet off -run '^TestFaults$' -timeout 25m ./internal/test/chaos; then
		failed+=("$name")
	fi
done <<<"$servers"
[ ${#failed[@]} -eq 0 ] || { echo "test-servers: failed on: ${failed[*]}"; exit 1; }
