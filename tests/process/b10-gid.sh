#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B10: with fe80:: and a routable address on the port, the routable RoCE v2 GID is taken; a bad
# GID index is an error that names it.
. "$(dirname "$0")/lib.sh"
memcached_start

mn_refuses 2 1 --gid-index 250
says 'gid.*250|250.*gid' "memory node names the bad GID index"
mn_start 1
kv --gid-index 250 put key value
exits_not_0 "client with GID index 250 is refused"
says 'gid.*250|250.*gid' "client names the bad GID index"

if [ "$device" = rxe0 ]; then
	gids=/sys/class/infiniband/rxe0/ports/1/gids
	grep -q '^fe80' $gids/0 || fail "the test wants a link-local GID at index 0"
	kv put key value
	exits 0 "put with the GID chosen by default"
	cat "$work/mn1.out" >> "$work/mn1.log"
	mn_log_says 1 'gid=1 ' \
		"memory node has chosen the routable GID at index 1"
fi
