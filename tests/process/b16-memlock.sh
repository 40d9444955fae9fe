#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B16: with a memlock limit of 64 KiB and without CAP_IPC_LOCK, registration fails: memory node and
# client name the limit and the bytes they need, and exit without a crash.
. "$(dirname "$0")/lib.sh"
only_on rxe0
memcached_start
locked_out=(setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock prlimit --memlock=65536)

run "${locked_out[@]}" "$BIN/farkv-mn" --cluster "$cluster" --memcached "$memcached" --id 1 \
	--size 256M --device "$device" --region-path "$regions" --hugepages none --ephemeral
exits 1 "memory node is refused"
says 'memlock|RLIMIT_MEMLOCK|ulimit -l' "memory node names the limit"
says '65536|64 ?K' "memory node says how much it is"
says '[0-9]{6,}|256 ?M' "memory node says how much it needs"
[ -z "$(mn_record 1)" ] || fail "it has published a record"

mn_start 1
run "${locked_out[@]}" "$BIN/farkv" --cluster "$cluster" --memcached "$memcached" \
	--device "$device" put key value
exits_not_0 "client is refused"
says 'memlock|RLIMIT_MEMLOCK|ulimit -l' "client names the limit"
says '65536|64 ?K' "client says how much it is"
kv put key value
exits 0 "the same client without the limit works"
