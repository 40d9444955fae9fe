#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A memory node from start to end: ready line, record, SIGTERM and SIGINT, nothing left behind.
. "$(dirname "$0")/lib.sh"
memcached_start

for signal in TERM INT; do
	before=$(ls -A "$regions")
	mn_start 1
	[ -n "$(mn_record 1)" ] || fail "no record in memcached: $(memcached_keys)"
	ok "ready means published"
	[ "$(wc -l < "$work/mn1.out")" -eq 1 ] || fail "more than the ready line on standard output"
	kill -"$signal" "${mn_pid[1]}"
	mn_end 1
	exits 0 "memory node ends with 0 on SIG$signal"
	[ -z "$(mn_record 1)" ] || fail "the record is still in memcached"
	ok "the record is withdrawn"
	[ "$(ls -A "$regions")" = "$before" ] || fail "left behind: $(ls -A "$regions")"
	ok "--ephemeral leaves no file"
done

mn_keep=()
mn_start 1
kill -KILL "${mn_pid[1]}"
mn_end 1
mn_start 1
ok "a start on the file of a killed memory node succeeds"
grep -qi 'anew\|format' "$work/mn1.log" || fail "it does not say that it formats anew"
ok "and says that it formats the region anew"
