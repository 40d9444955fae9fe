#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# B14: a region size that is no multiple of a page, started and stopped many times: nothing leaks,
# and not more is published than is mapped.
. "$(dirname "$0")/lib.sh"
memcached_start
free_pages() { sed -n 's/^HugePages_Free: *//p' /proc/meminfo; }

times=200 mn_size=$((9 * 1024 * 1024 + 1))
if [ "$device" = rxe0 ]; then
	times=20 mn_place=(--hugepages 2M)
	[ "$(free_pages)" -gt 8 ] || skip "needs 2 MiB hugepages"
fi
pages=$(free_pages) files=$(ls -A "$regions" "$SOFTNIC_DIR")

for ((i = 1; i <= times; i++)); do
	mn_start 1
	if [ $i -eq 1 ]; then
		kv put key value
		exits 0 "put into a region of $mn_size bytes"
		published=$(sed -n 's/.* region=\([0-9]*\).*/\1/p' "$work/mn1.out")
		mapped=$(awk '/^[0-9a-f]+-[0-9a-f]+ / { region = /farkv-[^ ]*region/ } region && /^Size:/ { sum += $2 }
			END { printf "%d\n", sum * 1024 }' "/proc/${mn_pid[1]}/smaps")
		[ "$published" -le "$mapped" ] || fail "published $published, mapped $mapped"
		ok "published $published <= mapped $mapped"
	fi
	kill -TERM "${mn_pid[1]}"
	mn_end 1
	[ "$rc" -eq 0 ] || fail "stop $i: exit status $rc"
	processes=("$memcached_pid")
done
ok "$times starts and stops"
[ "$(free_pages)" = "$pages" ] || fail "hugepages free: $pages before, $(free_pages) after"
ok "no hugepage leaks"
[ "$(ls -A "$regions" "$SOFTNIC_DIR")" = "$files" ] || fail "left: $(ls -A "$regions" "$SOFTNIC_DIR")"
ok "no file leaks"
