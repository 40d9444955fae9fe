#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B53: every numeric option refuses what is no number of its range, as a usage error that names it.
. "$(dirname "$0")/lib.sh"
only_on softnic # parsing is the same everywhere, and a thousand starts are slow in a guest
memcached=127.0.0.1:1 # nobody is asked
huge=18446744073709551617 # 2^64 + 1
long=4294967297           # 2^32 + 1
run_seconds=10

# refuses PROGRAM OPTION VALUE... [-- ARGUMENT...]
refuses() {
	local program=$1 option=$2 values=()
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		values+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	for value in "${values[@]}"; do
		run "$BIN/$program" --memcached "$memcached" --device "$device" "$option" "$value" "$@"
		[ "$rc" -eq 2 ] || fail "$program $option '$value': exit status $rc, expected 2; it says: $err"
		grep -qe "$option" <<<"$err" || fail "$program $option '$value': it says: $err"
	done
	ok "$program $option refuses: ${values[*]@Q}"
}

bad=(text "" "$huge" 1.5e 0x10 " 1" 1q)
refuses farkv-mn --id 0 -1 "$long" 1k "${bad[@]}"
refuses farkv-mn --size 0 -1 1k "${bad[@]}"
refuses farkv-mn --expected-keys 0 -1 1k "${bad[@]}"
refuses farkv-mn --gid-index -2 "$long" 1k "${bad[@]}"
refuses farkv-mn --hugepages 3M 0 -1 "${bad[@]}"

refuses farkv --gid-index -2 "$long" 1k "${bad[@]}" -- get key

for option in --records --ops --threads --depth; do
	refuses farkv-bench $option 0 -1 1k "${bad[@]}" -- --workload a
done
for option in --threads --depth; do
	refuses farkv-bench $option "$long" -- --workload a
done
refuses farkv-bench --seconds 0 -1 1k nan inf "${bad[@]}" -- --workload a
refuses farkv-bench --key-bytes 0 -1 1025 "$long" "${bad[@]}" -- --workload a
refuses farkv-bench --value-bytes -1 65537 "$long" "${bad[@]}" -- --workload a
refuses farkv-bench --theta -1 1k nan inf 2 "${bad[@]}" -- --workload a
refuses farkv-bench --rate 0 -1 1k nan inf "${bad[@]}" -- --workload a
refuses farkv-bench --seed -1 1k "${bad[@]}" -- --workload a
refuses farkv-bench --dist -1 text "" -- --workload a
refuses farkv-bench --workload text ""
