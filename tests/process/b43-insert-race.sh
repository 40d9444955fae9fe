#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# B43: two processes insert the same new keys with the largest values: one defined winner each, and never a key that
# exists without its value.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1 --size 1G
keys=2000
[ "$device" = softnic ] || keys=60
mn_size=1G
clients=()
for id in 0 1; do
	"$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" --records $keys --ops $((keys * 2)) \
		--mix insert=70,get=30 --dist uniform --value-bytes 65536 --threads 2 --depth 4 --clients 2 --client-id $id \
		--verify --verify-file "$work/model" --json "$work/client$id.json" --seed $((id + 7)) >"$work/client$id.log" 2>&1 &
	clients+=("$!")
	processes+=("$!")
done
for id in 0 1; do
	rc=0
	wait "${clients[$id]}" || rc=$?
	[ $rc -eq 0 ] || fail "client $id ends with status $rc"
	jq -e '.verify.wrong == 0 and .ops.insert.count > 0' "$work/client$id.json" >/dev/null ||
		fail "client $id: $(jq -c .verify "$work/client$id.json")"
	ok "client $id: $(jq -c '{verify, insert: .ops.insert.count}' "$work/client$id.json")"
done
