#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# Memory nodes sleep while clients work: during the gets, both together use under 1 % of a core.
. "$(dirname "$0")/lib.sh"
only_on softnic # an emulated kernel charges its Soft-RoCE work to whoever runs
memcached_start
mn_start 1
mn_start 2
records=10000 ops=1000000
[ "$device" = softnic ] || records=500 ops=5000
bench=("$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device"
	--records $records --value-bytes 100 --threads 2 --depth 16)
run_seconds=150
run "${bench[@]}" --workload load
exits 0 "load"

ticks() {
	sed "s/.*) //" "/proc/${mn_pid[1]}/stat" "/proc/${mn_pid[2]}/stat" |
		awk "{ n += \$12 + \$13 } END { print n }"
}
before=$(ticks) start=${EPOCHREALTIME/./}
run "${bench[@]}" --workload c --ops $ops --json "$work/c.json"
exits 0 "gets"
after=$(ticks) us=$((${EPOCHREALTIME/./} - start))
used_us=$(((after - before) * 1000000 / $(getconf CLK_TCK)))
# One tick of the clock is the least that can be told apart.
[ $((used_us * 100)) -lt "$us" ] || [ $((after - before)) -le 1 ] ||
	fail "memory nodes used $used_us us of $us us"
ok "memory nodes used $used_us us of $us us"
