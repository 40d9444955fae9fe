#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B34: a value keeps its exact length and bytes when it shrinks and grows, at every edge of a size.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
shell_start

sizes=(1000 3 1001 0 1 65536 2 65535)
for edge in 64 128 192 256 320 384 448 512 640 768 896 1024 1280 1536 1792 2048 2560 3072 3584 4096 \
		5120 6144 7168 8192 10240 12288 14336 16384 20480 24576 28672 32768 40960 49152 57344; do
	# A block's header and key take the first bytes: every length near the edge.
	for ((less = 80; less >= 0; less -= 8)); do
		[ $((edge - less)) -le 0 ] || sizes+=($((edge - less)))
	done
	sizes+=($((edge - 1)) $((edge + 1)))
done
for size in "${sizes[@]}"; do
	asks "fill key $size" "ok" ""
	asks "check key $size" "ok" ""
done
ok "${#sizes[@]} lengths from 0 to 65536 bytes"
ask "fill key 65536"
kv get key
[ "$(wc -c < "$work/out")" -ge 65536 ] || fail "the command-line client reads $(wc -c < "$work/out") bytes"
ok "another process reads all 65536 bytes"
