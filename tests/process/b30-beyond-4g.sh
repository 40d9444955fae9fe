#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# B30: nothing is cut to 32 bits: regions of 4 GiB - 2 MiB, 4 GiB and 5 GiB, filled past 4 GiB, every value read back.
. "$(dirname "$0")/lib.sh"
only_on softnic
run_seconds=120
available=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
[ "$available" -gt 8000 ] || skip "needs 8 GB of free memory, $available MB are there"
memcached_start
id=0
# Blocks of 64000 bytes: one to a unit of 64 KiB; so many that the last lie at the region's end.
for region in 4292870144:62000 4294967296:62000 5368709120:78000; do
	id=$((id + 1))
	cluster=$test_name-$$-$id
	mn_start $id --size "${region%:*}" --expected-keys 100000
	bench=("$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" \
		--records "${region#*:}" --value-bytes 50000 --threads 2 --depth 4)
	run "${bench[@]}" --workload load
	exits 0 "${region%:*} bytes: ${region#*:} values of 50,000 bytes"
	run "${bench[@]}" --workload c --ops 1000 --verify --json "$work/c.json"
	exits 0 "all of them are read back"
	jq -e --argjson n "${region#*:}" '.verify.wrong == 0 and .verify.checked >= $n' "$work/c.json" >/dev/null ||
		fail "$(jq -c .verify "$work/c.json")"
	used=$("$BIN/farkv" --cluster "$cluster" --memcached "$memcached" --device "$device" stat --json | jq '.[0].units_used')
	ok "$used units of 64 KiB in use"
	kill -TERM "${mn_pid[$id]}"
	mn_end $id
done
[ "$used" -gt 70000 ] || fail "the last region was filled beyond 4 GiB"
