#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without memcached, programs end within their time-out and name it; running clients go on.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
mn_start 2
shell_start
asks "put key before" "ok" "put while memcached runs"

kill -TERM "$memcached_pid"
end_within 5 "$memcached_pid" || fail "memcached does not end"

run_seconds=15
kv get key
exits 3 "a client that starts without memcached ends with 3"
says "memcached" "it names memcached"
says_not "not found|no such" "and does not call the key absent"
run "$BIN/farkv-mn" --cluster "$cluster" --memcached "$memcached" --id 3 --size 64M \
	--device "$device" --region-path "$regions" --hugepages none --ephemeral
exits 3 "a memory node that starts without memcached ends with 3"
says "memcached" "it names memcached"
[ -z "$out" ] || fail "it says on standard output: $out"

asks "get key" "ok before" "a running client still reads"
asks "put key after" "ok" "and writes"
asks "get key" "ok after" "and reads what it wrote"

for id in 1 2; do
	kill -TERM "${mn_pid[$id]}"
	mn_end $id
	exits 0 "memory node $id ends with 0 without memcached"
done
