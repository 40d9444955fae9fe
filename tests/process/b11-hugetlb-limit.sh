#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B11: a hugetlb cgroup limit kills at the first touch of a page. The memory node says so and ends
# before it publishes anything.
. "$(dirname "$0")/lib.sh"
need_root
pages=$(cat /proc/sys/vm/nr_hugepages)
[ "$pages" -ge 512 ] || skip "needs 512 free 2 MiB hugepages, there are $pages"
group=$work/cgroup/farkv-test
mkdir "$work/cgroup"
mount -t cgroup2 none "$work/cgroup" 2>/dev/null || skip "cannot mount cgroup2"
undo() {
	rmdir "$group" 2>/dev/null || true
	umount "$work/cgroup"
}
echo +hugetlb > "$work/cgroup/cgroup.subtree_control" 2>/dev/null || skip "no hugetlb cgroup"
mkdir "$group"
echo 64M > "$group/hugetlb.2MB.max"

memcached_start
rc=0
timeout 60 bash -c 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"' - "$group" \
	"$BIN/farkv-mn" --cluster "$cluster" --memcached "$memcached" --id 1 --size 1G \
	--device "$device" --hugepages 2M --ephemeral >"$work/out" 2>"$work/mn1.log" || rc=$?
out=$(cat "$work/out") err=$(cat "$work/mn1.log")
exits_not_0 "1 GiB under a limit of 64 MiB is refused, not killed"
says 'hugetlb|hugepage|cgroup' "it says why"
[ -z "$out" ] || fail "it says on standard output: $out"
[ -z "$(mn_record 1)" ] || fail "it has published a record"
ok "nothing was published"
[ "$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)" = "$pages" ] || fail "hugepages leak"
ok "no hugepage is left in use"
