#!/usr/bin/env bash
# Fetches the newer servers that the tests also run with, Redis 8.0 and Valkey 8.1,
# from the next Debian release, and prints for each a line "NAME DIRECTORY"; in the
# directory stands a program named redis-server. Nothing of the system changes: the
# packages are unpacked, with the libraries they need, below the cache directory
# (RUNNEL_SERVERS, or runnel-servers in the user's cache). Does nothing where they are there.
#
# It needs Debian 12's apt-get and its package sources. apt-get checks the signatures.
set -euo pipefail

release=trixie
root=${RUNNEL_SERVERS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/runnel-servers}
packages=(redis-server redis-tools valkey-server valkey-tools libc6 libjemalloc2 liblzf1 libssl3t64
	libsystemd0 libatomic1 liblua5.1-0 lua-cjson lua-bitop libhiredis1.1.0 libstdc++6 libgcc-s1
	libcap2 libzstd1 zlib1g liblzma5 liblz4-1 libgcrypt20 libgpg-error0)

give_up() {
	echo "setup-servers: $1" >&2
	exit 1
}

# print says where the servers are, and fails where one does not run.
print() {
	for name in redis8 valkey; do
		"$root/$name/redis-server" --version >/dev/null || give_up "$root/$name/redis-server does not run: remove $root and try again"
		echo "$name $root/$name"
	done
}

if [ -e "$root/complete" ]; then
	print
	exit 0
fi

command -v apt-get >/dev/null 2>&1 || give_up "there is no apt-get here"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ "$codename" = bookworm ] || give_up "this is not Debian 12, whose package sources it needs"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,debs} "$root"
# The machine's own sources of this release, and no others, with the name of the next one.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
	[ -f "$file" ] && grep -qE "^(deb|Suites:).*\b$codename(-updates|-security)?( |\$)" "$file" || continue
	sed "/^\(deb\|Suites:\)/s/\b$codename\b/$release/g" "$file" >"$work/sources/${file##*/}"
done

apt=(apt-get -qq -oDir::Etc::SourceList=/dev/null "-oDir::Etc::SourceParts=$work/sources"
	"-oDir::State::Lists=$work/lists" "-oDir::Cache=$work/cache" -oAPT::Sandbox::User=)
echo "setup-servers: fetching Redis 8.0 and Valkey 8.1 from Debian's next release" >&2
"${apt[@]}" update >&2 || give_up "apt-get could not read the lists of the next release"
(cd "$work/debs" && "${apt[@]}" download "${packages[@]}") >&2 || give_up "apt-get could not fetch the packages"
rm -rf "$root/files"
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$root/files"; done

loader=$(find "$root/files" -name 'ld-linux-*' -type f | head -1)
libraries=$(find "$root/files" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd:)
[ -n "$loader" ] || give_up "the packages hold no loader"
for pair in redis8:redis-server valkey:valkey-server; do
	mkdir -p "$root/${pair%%:*}"
	program=$(find "$root/files" -path "*/bin/${pair##*:}" | head -1)
	# redis-server is a link to the program that checks its files, which looks at its own name.
	{
		echo '#!/bin/sh'
		echo "exec '$loader' --library-path '$libraries' '$program' \"\$@\""
	} >"$root/${pair%%:*}/redis-server"
	chmod +x "$root/${pair%%:*}/redis-server"
done
touch "$root/complete"
print
