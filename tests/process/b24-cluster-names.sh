#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B24: cluster names that memcached keys cannot hold are refused before anything is sent.
. "$(dirname "$0")/lib.sh"
memcached_start
sent() { memcached_says stats | grep -E 'cmd_(get|set|touch|meta)|total_connections|incr' | grep -v total; }
of_length() { head -c "$1" /dev/zero | tr '\0' n; }

before=$(sent)
names=("$(of_length 181)" "$(of_length 230)" "$(of_length 250)" "$(of_length 251)"
	"two words" $'two\nlines' $'control\x01' "")
for name in "${names[@]}"; do
	shown="'${name:0:12}' (${#name} bytes)"
	run "$BIN/farkv" --cluster "$name" --memcached "$memcached" --device "$device" get key
	exits 2 "client refuses the cluster name $(printf %q "$shown")"
	says 'cluster' "and names it"
	run "$BIN/farkv-mn" --cluster "$name" --memcached "$memcached" --id 1 --size 64M \
		--device "$device" --region-path "$regions" --hugepages none --ephemeral
	exits 2 "memory node refuses it, too"
done
[ "$(sent)" = "$before" ] || fail "memcached has been asked: $(sent)"
ok "memcached was never asked"

cluster=$(of_length 180)
mn_start 1
kv put key value
exits 0 "a name of 180 bytes works"
[ -z "$(memcached_keys | awk 'length > 250')" ] || fail "a key longer than 250 bytes"
ok "no key is longer than 250 bytes"
