#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The region lies on the pages that were asked for, as the kernel reports them.
. "$(dirname "$0")/lib.sh"
need_root
free_1g=/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages
free_2m=/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages
[ "$(cat $free_2m 2>/dev/null || echo 0)" -ge 128 ] || skip "needs 128 free 2 MiB hugepages"
memcached_start

# page_kb PID: the largest pages it maps shared, and how many KiB of them.
mapped_on() {
	awk -v wanted="$2" '/^[0-9a-f]+-[0-9a-f]+ / { shared = $2 ~ /s/ } /^Size:/ { size = $2 }
		/^KernelPageSize:/ && shared && $2 == wanted { sum += size } END { print sum + 0 }' \
		"/proc/$1/smaps"
}

check() {
	local pages=$1 page_kb=$2 size=$3 size_kb=$4 free=$5 before
	before=$(cat "$free")
	mn_size=$size mn_place=(--hugepages "$pages")
	mn_start 1
	[ "$(mapped_on "${mn_pid[1]}" "$page_kb")" -ge "$size_kb" ] ||
		fail "--hugepages $pages: $(grep -h KernelPageSize "/proc/${mn_pid[1]}/smaps" | sort | uniq -c)"
	ok "--hugepages $pages: smaps shows $size on pages of $page_kb kB"
	kv put key value
	exits 0 "put"
	kill -TERM "${mn_pid[1]}"
	mn_end 1
	exits 0 "memory node ends with 0"
	[ "$(cat "$free")" = "$before" ] || fail "free pages: $before before, $(cat "$free") after"
	ok "all its pages are free again"
}
check 2M 2048 256M 262144 $free_2m
check auto 2048 256M 262144 $free_2m
[ "$(cat $free_1g 2>/dev/null || echo 0)" -ge 1 ] || skip "no free 1 GiB page; 2 MiB pages are right"
check 1G 1048576 1G 1048576 $free_1g
