#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B13: without hugepages the memory node announces its fallback, or refuses with the true reason.
. "$(dirname "$0")/lib.sh"
pages=$(cat /proc/sys/vm/nr_hugepages)
if [ "$pages" -gt 0 ]; then
	[ "$device" = rxe0 ] || skip "this machine has $pages hugepages, and they may be in use"
	echo 0 > /proc/sys/vm/nr_hugepages
	undo() { echo "$pages" > /proc/sys/vm/nr_hugepages; }
fi
memcached_start

mn_place=(--hugepages 2M)
mn_refuses 1 1
says 'hugepage|2 ?M' "it names the hugepages"
says_not 'memlock' "and no other limit"

mn_place=(--hugepages auto)
mn_start 1
mn_log_says 1 'tmpfs|hugepage' "with --hugepages auto the fallback is announced"
kv put key value
exits 0 "and the store works"
kill -TERM "${mn_pid[1]}"
mn_end 1
exits 0 "it ends with 0"
left=$(ls -d /dev/shm/*"$cluster"* 2>/dev/null || true)
[ -z "$left" ] || fail "left behind: $left"
ok "nothing is left in /dev/shm"
