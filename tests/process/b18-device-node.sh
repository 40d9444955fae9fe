#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B18: no /dev/infiniband, with or without devices in sysfs. By default the software NIC is used
# and one notice says so; a device that is named is an error.
. "$(dirname "$0")/lib.sh"
memcached_start
hide=()
if [ -d /dev/infiniband ]; then
	need_root
	hide=(unshare --mount sh -c 'mount -t tmpfs none /dev/infiniband && exec "$@"' -)
fi
options=(--cluster "$cluster" --memcached "$memcached")

run "${hide[@]}" "$BIN/farkv-mn" "${options[@]}" --id 2 --size 64M --device rxe0 \
	--region-path "$regions" --hugepages none --ephemeral
exits 1 "memory node with a named device is refused"
says 'rxe0' "memory node names the device"

"${hide[@]}" "$BIN/farkv-mn" "${options[@]}" --id 1 --size 64M --region-path "$regions" \
	--hugepages none --ephemeral >"$work/mn1.out" 2>"$work/mn1.log" &
mn_pid[1]=$!
processes+=("$!")
mn_ready 1
mn_log_says 1 'software NIC|softnic|soft0' "memory node by default: the notice"

run "${hide[@]}" "$BIN/farkv" "${options[@]}" put key value
exits 0 "client by default uses the software NIC"
run "${hide[@]}" "$BIN/farkv" "${options[@]}" --device rxe0 get key
exits_not_0 "client with a named device is refused"
says 'rxe0' "client names the device"
