#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B22: a memcached that does not answer is a time-out of memcached, for client and memory node,
# never "no such": nothing is set up anew because of it.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
kv put key value
exits 0 "put before"

kill -STOP "$memcached_pid"
run_seconds=20
kv get key
exits 3 "client ends with 3 while memcached is stopped"
says 'memcached' "client names memcached"
says 'time-?d? ?-?out|in time|did not answer|no answer' "client calls it a time-out"
says_not 'no such|not found|no memory node|absent|holds no' "client does not call anything absent"
run "$BIN/farkv-mn" --cluster "$cluster" --memcached "$memcached" --id 2 --size 64M \
	--device "$device" --region-path "$regions" --hugepages none --ephemeral
exits 3 "memory node ends with 3 while memcached is stopped"
says 'memcached' "memory node names memcached"
says 'time-?d? ?-?out|in time|did not answer|no answer' "memory node calls it a time-out"
says_not 'no such|not found|absent' "memory node does not call anything absent"

kill -CONT "$memcached_pid"
kv get key
exits 0 "get after"
[ "$out" = value ] || fail "get after returns: $out"
