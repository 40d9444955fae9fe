#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# Every operation costs what the budget table says, counted by the client and at the device; with the
# usual inline size, with none, and with 96 bytes (B7).
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1

bench() {
	run "$BIN/farkv-bench" --cluster "$cluster" --memcached "$memcached" --device "$device" "$@"
}

inlines='220 96 0' sizes='64 96 97 220 1000'
[ "$device" = softnic ] || inlines='220 0' sizes='1000' # a guest is slow

for inline in $inlines; do
	export FARKV_MAX_INLINE=$inline
	bench --probe --rounds 10 --json "$work/probe.json" --value-bytes 64
	exits 0 "max_inline $inline: every budget is met, at the client and at the device"
	[ "$(jq length "$work/probe.json")" -eq 11 ] || fail "eleven rows"
done
granted=$(jq '[.[] | select(.op == "update" and .state == "cached") | .inline_writes] | add' "$work/probe.json")
[ "$granted" -eq 0 ] || fail "without inline nothing goes inline"
ok "max_inline 0: the same requests from registered buffers"

unset FARKV_MAX_INLINE
for bytes in $sizes; do
	bench --probe --rounds 10 --value-bytes $bytes --json "$work/probe.json"
	exits 0 "values of $bytes bytes"
done
