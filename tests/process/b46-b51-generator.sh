#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# The load generator against the store: keys (B46), counts (B47), edges of the distributions (B49), distinct keys (B50),
# latency from the intended start (B51).
. "$(dirname "$0")/lib.sh"
only_on softnic # the generator is the same everywhere
memcached_start
mn_start 1 --size 1G --expected-keys 1200000 --hugepages none
bench() {
	run "$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" --value-bytes 64 "$@"
}

bench --workload load --records 100 --threads 3 --json "$work/load.json"
exits 0 "B47: loading 100 records with 3 threads"
jq -e '.ops.insert.count == 100' "$work/load.json" >/dev/null || fail "B47: $(jq .ops.insert.count "$work/load.json") inserts"
bench --workload c --records 100 --ops 1 --threads 2 --json "$work/one.json"
exits 0 "B47: 1 operation with 2 threads"
jq -e '.ops.get.count == 1' "$work/one.json" >/dev/null || fail "B47: exactly one"
ok "B47: exactly 100, exactly 1"

bench --workload load --records 0
exits 2 "B49: no records: a usage error"
for theta in 0 0.5 1.0; do
	bench --workload c --records 100 --ops 1000 --dist zipfian --theta $theta
	exits 0 "B49: theta $theta"
done

for dist in zipfian latest; do
	cluster=$test_name-$$-$dist
	id=$([ $dist = zipfian ] && echo 2 || echo 3)
	mn_start $id --size 256M --hugepages none
	printf '%s\n' recordcount=1000 operationcount=10000 readproportion=0.5 insertproportion=0.5 \
		requestdistribution=$dist > "$work/half"
	bench --workload "$work/half" --load
	exits 0 "B46: 1000 records"
	bench --workload "$work/half" --threads 2 --depth 8 --json "$work/half.json"
	exits 0 "B46: half inserts, $dist"
	jq -e '.ops.get.not_found == 0 and .ops.get.count > 4000' "$work/half.json" >/dev/null ||
		fail "B46: $(jq -c .ops.get "$work/half.json")"
	ok "B46: no key is read before its insert is acknowledged"
done

cluster=$test_name-$$-million
mn_start 4 --size 1G --expected-keys 1200000 --hugepages none
bench --workload load --records 1000000 --threads 2 --depth 32
exits 0 "B50: a million records"
kv stat --json
[ "$(jq '.[0].items' <<<"$out")" -eq 1000000 ] || fail "B50: $(jq '.[0].items' <<<"$out") items"
ok "B50: a million distinct keys"

"$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" --value-bytes 64 --workload c \
	--records 1000000 --rate 10000 --seconds 10 --json "$work/open.json" >"$work/open.log" 2>&1 &
client=$!
processes+=("$client")
sleep 4
kill -STOP "$client"
sleep 1
kill -CONT "$client"
rc=0
wait "$client" || rc=$?
[ $rc -eq 0 ] || fail "B51: the open loop ends with status $rc"
jq -e '.ops.get.latency_us.p99 > 500000' "$work/open.json" >/dev/null ||
	fail "B51: a second's stall is hidden: $(jq -c .ops.get.latency_us "$work/open.json")"
ok "B51: latency from the intended start shows a stall of 1 s: p99 $(jq '.ops.get.latency_us.p99' "$work/open.json") us"
