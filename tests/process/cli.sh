#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command-line client: each command's effect and exit status.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
mn_start 2

kv get absent
exits 1 "get of an absent key"
kv update absent x
exits 1 "update of an absent key"
kv del absent
exits 1 "del of an absent key"
kv insert name first
exits 0 "insert of a new key"
kv insert name second
exits 1 "insert of a present key"
kv get name
exits 0 "get of a present key"
[ "$out" = first ] || fail "the refused insert has changed nothing: $out"
kv update name third
exits 0 "update of a present key"
kv put name fourth
exits 0 "put of a present key"
kv get name
[ "$out" = fourth ] || fail "get returns the last put: $out"
kv put other value
exits 0 "put of a new key"
kv del name
exits 0 "del of a present key"
kv get name
exits 1 "get of a deleted key"
kv stat
exits 0 "stat"

head -c 40000 /dev/urandom > "$work/value"
rc=0
"$BIN/farkv" --cluster "$cluster" --memcached "$memcached" --device "$device" put bytes - \
	<"$work/value" 2>"$work/last-command.log" || rc=$?
exits 0 "put of standard input"
kv get bytes
head -c 40000 "$work/out" > "$work/back"
same_file "$work/value" "$work/back" "get returns the same bytes"

for arguments in "" "get" "put key" "frob key" "get a b c" "--nonsense get a"; do
	# shellcheck disable=SC2086
	run "$BIN/farkv" $arguments
	exits 2 "usage error: farkv $arguments"
done
