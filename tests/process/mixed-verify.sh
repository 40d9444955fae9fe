#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# Four client processes of two threads, 16 operations deep, insert, update, get and delete the same 1,000
# keys on two memory nodes; every value is verified, and a checker that reads the regions finds no key twice.
. "$(dirname "$0")/lib.sh"
memcached_start
ops=1250000 mn_size=4G
if [ "$device" != softnic ]; then
	ops=1500 mn_size=64M
fi
mn_place=(--region-path "$regions" --hugepages none)
mn_keep=() # the checker reads the files afterwards
mn_start 1
mn_start 2

clients=()
for id in 0 1 2 3; do
	"$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" \
		--mix insert=25,update=25,get=25,delete=25 --dist uniform --records 1000 --ops $ops --threads 2 --depth 16 \
		--clients 4 --client-id $id --verify --verify-file "$work/model" --json "$work/client$id.json" \
		--seed $((id + 1)) >"$work/client$id.log" 2>&1 &
	clients+=("$!")
	processes+=("$!")
done
for id in 0 1 2 3; do
	rc=0
	wait "${clients[$id]}" || rc=$?
	[ $rc -eq 0 ] || fail "client $id ends with status $rc: $(tail -5 "$work/client$id.log")"
	jq -e '.verify.wrong == 0 and .verify.checked > 0' "$work/client$id.json" >/dev/null ||
		fail "client $id: $(jq -c .verify "$work/client$id.json")"
	ok "client $id: $(jq -c .verify "$work/client$id.json")"
done
total=$(jq -s '[.[].ops[].count] | add' "$work"/client?.json)
[ "$total" -ge $((ops * 4)) ] || fail "only $total operations"
ok "$total operations"

for id in 1 2; do
	kill -TERM "${mn_pid[$id]}"
	mn_end $id
done
run "$BIN/farkv" fsck "$regions"/farkv-"$cluster"-*.region
exits 0 "the regions are sound and no key is there twice: $out"
