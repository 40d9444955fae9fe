#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B21: kill -9 of a memory node, then a restart against the same memcached, under a new rkey. A new
# client works; the old one reconnects or fails, and never sees memory that is not its own.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
shell_start
for i in 1 2 3 4; do
	asks "fill key$i ${i}00" "ok" ""
done
ok "an old client with cached addresses"

kill -KILL "${mn_pid[1]}"
mn_end 1
ask "get key1"
[[ $answer != ok* && $answer != nothing ]] || fail "get from a dead memory node answers '$answer'"
ok "the old client fails while the memory node is dead: $answer"

mn_start 1
for i in 1 2 3 4; do
	kv put "new$i" "by a new client, $i"
	exits 0 "a new client writes new$i"
done
kv get new1
[ "$out" = "by a new client, 1" ] || fail "the new client reads: $out"
ok "and reads"

for i in 1 2 3 4; do
	ask "check key$i ${i}00"
	case $answer in
		length* | "wrong bytes" | nothing) fail "the old client's key$i: $answer" ;;
	esac
	ok "the old client's key$i: $answer"
	ask "get new$i"
	[[ $answer != ok* || $answer = "ok by%20a%20new%20client,%20$i" ]] ||
		fail "the old client reads new$i as $answer"
	ok "the old client's view of new$i: $answer"
done
kv get new4
[ "$out" = "by a new client, 4" ] || fail "new4 has changed: $out"
ok "the old client has disturbed nothing"
