#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B31: an empty value is found and has length 0; an empty key is refused everywhere alike.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1

kv put key ""
exits 0 "put of an empty value"
kv get key
exits 0 "get finds it"
[ -z "${out//$'\n'/}" ] || fail "get returns: $out"
kv put other abc
kv update other ""
exits 0 "update from abc to empty"
kv get other
exits 0 "get finds it"
[ -z "${out//$'\n'/}" ] || fail "get returns: $out"
kv insert key x
exits 1 "a key with an empty value exists"

for command in "get" "put" "insert" "update" "del"; do
	case $command in
		get | del) kv "$command" "" ;;
		*) kv "$command" "" value ;;
	esac
	exits 2 "$command of an empty key is refused"
done

shell_start
asks "check key 0" "ok" "the library gives length 0"
asks "fill empty 0" "ok" "and takes it"
asks "check empty 0" "ok" "and finds it"
