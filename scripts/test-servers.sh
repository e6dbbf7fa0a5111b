#!/usr/bin/env bash
# Runs the tests that depend on the server on the installed redis-server, on Redis 8.0 and on Valkey
# 8.1, one after the other: scripts, conformance, clusters, security, views, and a play of chaos.
# With the argument "short" only the scripts, and only on the two newer servers, at the same time; how
# long scripts hold a server is not measured then, and 80 nets of jobs are played in place of 300.
# All run even if one fails; the last line names the failed ones.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
scripts/setup-test.sh || exit 1
servers=$(scripts/setup-servers.sh) || exit 1
failed=$(mktemp) || exit 1
trap 'rm -f "$failed"' EXIT

# run runs go test with the server of a directory, one package at a time: some have leases of a second.
# It leaves out what runs on the embedded server.
run() {
	local name=$1 directory=$2
	shift 2
	echo "test-servers: $name, $("$directory/redis-server" --version)"
	PATH="$directory:$PATH" "$go" test -count 1 -vet off -timeout 25m -p 1 -skip '/^embedded$' "$@" || echo "$name" >>"$failed"
}

if [ "${1:-}" = short ]; then
	export RUNNEL_SIM_SEEDS=20
	while read -r name directory; do
		run "$name" "$directory" -skip '/^embedded$|HoldTheServer|CopiesARecord' ./internal/store ./internal/redisconn ./internal/stage ./internal/schedule &
	done <<<"$servers"
	wait
else
	while read -r name directory; do
		run "$name" "$directory" ./internal/redisconn ./internal/store ./internal/stage ./internal/schedule ./stage ./internal/test/conformance ./internal/test/cluster ./internal/test/security ./internal/test/views ./internal/inspect
		RUNNEL_CHAOS_DURATION=30s run "$name" "$directory" -run '^TestFaults$' ./internal/test/chaos
	done <<<"installed $(dirname "$(command -v redis-server)")
$servers"
fi
[ ! -s "$failed" ] || { echo "test-servers: failed on:" $(sort -u "$failed"); exit 1; }
