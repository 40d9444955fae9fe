#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# B32: keys are compared in full: prefixes, extensions and bytes after a NUL are other keys.
. "$(dirname "$0")/lib.sh"
memcached_start
mn_start 1
shell_start

asks "insert 1234567 number" "ok" "insert 1234567"
absent=$(ask "get no-such-key"; echo "$answer")
for key in 12345678 123456 1234567%00 %001234567 1234568; do
	asks "get $key" "$absent" "get $key: $absent"
done
asks "insert a%00b one" "ok" "insert a\\0b"
asks "insert a%00c two" "ok" "insert a\\0c"
asks "get a%00b" "ok one" "get a\\0b"
asks "get a%00c" "ok two" "get a\\0c"
asks "get a" "$absent" "get a"
asks "del a%00b" "ok" "del a\\0b"
asks "get a%00c" "ok two" "a\\0c is still there"
asks "get 1234567" "ok number" "get 1234567"
