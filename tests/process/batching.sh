#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# 32 gets in flight share doorbells and completions: at most 1/8 of each per get.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
bench() {
	run "$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" "$@"
}

records=20000 ops=100000
[ "$device" = softnic ] || records=1000 ops=4000
bench --workload load --records $records --threads 1 --depth 32
exits 0 "load"
bench --workload c --records $records --ops $ops --threads 1 --depth 32 --verbs --json "$work/c.json"
exits 0 "workload C at depth 32"
grep -i doorbell "$work/out" || fail "--verbs prints doorbells"
jq -e '.verbs_per_op.doorbells <= 0.125' "$work/c.json" >/dev/null ||
	fail "doorbells per get: $(jq .verbs_per_op.doorbells "$work/c.json")"
ok "doorbells per get: $(jq .verbs_per_op.doorbells "$work/c.json")"
jq -e '.verbs_per_op.cqes <= 0.125' "$work/c.json" >/dev/null ||
	fail "completions per get: $(jq .verbs_per_op.cqes "$work/c.json")"
ok "completions per get: $(jq .verbs_per_op.cqes "$work/c.json")"
