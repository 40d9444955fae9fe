# SPDX-License-Identifier: Apache-2.0
# Sourced by the process tests: starts memcached and memory nodes, checks what programs say and
# how they exit, and leaves nothing behind. Settings from the environment:
#   BIN            where the programs are (default: build/bin)
#   FARKV_DEVICE   softnic (default) or rxe0
# The first fault ends a test with exit status 1; exit status 77 is a skip.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BIN=${BIN:-$root/build/bin}
device=${FARKV_DEVICE:-softnic}
# The tests name what they want; what they leave out is the program's default.
for name in ${!FARKV_*}; do
	[ "$name" = FARKV_GUEST_SHARED ] || unset "$name"
done
# An emulated processor may pause for long: that is not to look like a dead peer.
[ "$device" = softnic ] || export FARKV_QP_TIMEOUT=17 FARKV_FENCE_AFTER_MS=20000
test_name=$(basename "$0" .sh)
cluster=$test_name-$$
work=$(mktemp -d)
regions=$(mktemp -d /dev/shm/farkv-test.XXXXXX) # files in memory; the tests see what stays
export SOFTNIC_DIR=$regions/nic
mkdir "$SOFTNIC_DIR"
declare -A mn_pid=()
processes=()
memcached_pid='' memcached=''
mn_size=256M mn_place=(--region-path "$regions" --hugepages none)
mn_keep=(--ephemeral) # () for memory nodes whose region files stay

undo() { :; } # a test may define its own, for what it has changed outside

finish() {
	local rc=$? pid
	trap '' INT TERM # a second signal must not cut this short
	trap - EXIT
	for pid in "${processes[@]}"; do
		kill -CONT "$pid" 2>/dev/null || true
		kill -TERM "$pid" 2>/dev/null || true
	done
	for pid in "${processes[@]}"; do
		end_within 5 "$pid" || kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	if [ $rc -ne 0 ] && [ $rc -ne 77 ]; then
		tail -n 40 "$work"/*.log 2>/dev/null || true
	fi
	undo || true
	rm -rf --one-file-system "$work" "$regions"
	exit $rc
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ok() { echo "ok: $1"; }
fail() { echo "not ok: $1"; exit 1; }
skip() { echo "skip: $1"; exit 77; }

# only_on DEVICE: for tests of one device's own behaviour.
only_on() { [ "$device" = "$1" ] || skip "this test is about $1, the device is $device"; }
need_root() { [ "$(id -u)" -eq 0 ] || skip "needs root"; }

# end_within SECONDS PID: waits until the process is gone.
end_within() {
	local tries=$(($1 * 20))
	while kill -0 "$2" 2>/dev/null; do
		# A zombie of ours is gone, too.
		[ "$(sed 's/.*) //; s/ .*//' "/proc/$2/stat" 2>/dev/null)" != Z ] || return 0
		[ $((tries--)) -gt 0 ] || return 1
		sleep 0.05
	done
}

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
	local tries=$(($1 * 20))
	shift
	until "$@"; do
		[ $((tries--)) -gt 0 ] || return 1
		sleep 0.05
	done
}

# memcached_start [OPTION...]: a memcached of our own on a port of its choice; sets $memcached.
memcached_start() {
	local port_file=$work/memcached.port user=() address=${memcached_host:-127.0.0.1}
	[ "$(id -u)" -ne 0 ] || user=(-u root)
	rm -f "$port_file"
	MEMCACHED_PORT_FILENAME=$port_file memcached "${user[@]}" -l "$address" -p -1 -U 0 -m 64 "$@" \
		>>"$work/memcached.log" 2>&1 &
	memcached_pid=$!
	processes+=("$memcached_pid")
	within 10 test -s "$port_file" || fail "memcached does not start"
	memcached=$address:$(sed -n 's/^TCP INET: //p' "$port_file")
}

# memcached_says COMMAND: its answer to one line of the text protocol that ends with END.
memcached_says() {
	local line
	exec 8<>"/dev/tcp/${memcached%:*}/${memcached##*:}"
	printf '%s\r\n' "$1" >&8
	while read -r -t 5 line <&8; do
		line=${line%$'\r'}
		[[ $line != END && $line != ERROR* && $line != BUSY* ]] || break
		printf '%s\n' "$line"
	done
	exec 8>&-
}

# memcached_keys: the keys it holds, one a line.
memcached_keys() {
	local key
	memcached_says 'lru_crawler metadump all' | sed -n 's/^key=\([^ ]*\) .*/\1/p' |
		while read -r key; do printf '%b\n' "${key//%/\\x}"; done
}

# mn_launch ID [OPTION...]: starts a memory node, does not wait. Of options given twice, the later wins.
mn_launch() {
	local id=$1
	shift
	: > "$work/mn$id.out"
	"$BIN/farkv-mn" --cluster "$cluster" --memcached "$memcached" --id "$id" \
		--size "$mn_size" --device "$device" "${mn_place[@]}" "${mn_keep[@]}" "$@" \
		>"$work/mn$id.out" 2>"$work/mn$id.log" &
	mn_pid[$id]=$!
	processes+=("$!")
}

mn_says_ready() { grep -q '^ready' "$work/mn$1.out"; }

# mn_ready ID: waits for its ready line, bounded.
mn_ready() {
	local tries=1200
	until mn_says_ready "$1"; do
		kill -0 "${mn_pid[$1]}" 2>/dev/null || fail "memory node $1 ended before it was ready"
		[ $((tries--)) -gt 0 ] || fail "memory node $1 is not ready after 60 s"
		sleep 0.05
	done
}

# mn_start ID [OPTION...]: starts a memory node and waits until it is ready.
mn_start() {
	mn_launch "$@"
	mn_ready "$1"
}

# mn_end ID: waits for the end of a memory node; sets $rc to its exit status.
mn_end() {
	end_within 15 "${mn_pid[$1]}" || fail "memory node $1 does not end"
	rc=0
	wait "${mn_pid[$1]}" || rc=$?
}

# mn_refuses STATUS ID [OPTION...]: a memory node that must end by itself; its log is $err.
mn_refuses() {
	local status=$1 id=$2
	shift
	mn_launch "$@"
	mn_end "$id"
	err=$(cat "$work/mn$id.log") out=$(cat "$work/mn$id.out")
	exits "$status" "memory node with '${*:2}' ends with status $status"
	[ -z "$out" ] || fail "it says on standard output: $out"
	[ -z "$(mn_record "$id")" ] || fail "it has published a record"
}

# mn_record ID: the key of its record in memcached, empty when there is none.
mn_record() { memcached_keys | grep -x "farkv:$cluster:mn:$1" || true; }

# run COMMAND...: at most 30 s; sets $rc, $out (standard output) and $err (standard error).
run() {
	rc=0
	timeout -k 2 "${run_seconds:-30}" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
	out=$(tr -d '\0' <"$work/out")
	err=$(tr -d '\0' <"$work/err")
	cp "$work/err" "$work/last-command.log"
}

# kv ARG...: the command-line client on the test's cluster.
kv() {
	run "$BIN/farkv" --cluster "$cluster" --memcached "$memcached" --device "$device" "$@"
}

# exits STATUS WHAT: checks the last run or kv.
exits() {
	[ "$rc" -ne 124 ] || fail "$2: still running after ${run_seconds:-30} s"
	[ "$rc" -eq "$1" ] || fail "$2: exit status $rc, expected $1; it says: $out $err"
	ok "$2"
}

# exits_not_0 WHAT: any failure that is not a crash or a time-out.
exits_not_0() {
	[ "$rc" -ne 0 ] || fail "$1: exit status 0"
	[ "$rc" -ne 124 ] || fail "$1: still running after ${run_seconds:-30} s"
	[ "$rc" -lt 128 ] || fail "$1: killed by signal $((rc - 128)); it says: $out $err"
	ok "$1"
}

# says PATTERN WHAT: standard error of the last command, any case.
says() { grep -qiE -- "$1" <<<"$err" || fail "$2: expected /$1/, it says: $err"; ok "$2"; }
says_not() { ! grep -qiE -- "$1" <<<"$err" || fail "$2: /$1/ is in: $err"; ok "$2"; }

# mn_log_says ID PATTERN WHAT
mn_log_says() {
	grep -qiE -- "$2" "$work/mn$1.log" || fail "$3: expected /$2/, it says: $(cat "$work/mn$1.log")"
	ok "$3"
}

same_file() { cmp -s "$1" "$2" || fail "$3: $(cmp "$1" "$2" 2>&1 || true)"; ok "$3"; }

# shell_start: a client that stays: one session, commands in, answers out (tests/kv_shell.c).
shell_start() {
	coproc shell_io { exec "$BIN/../tests/kv_shell" "$cluster" "$memcached" "$device" 2>"$work/shell.log"; }
	shell_pid=$!
	processes+=("$shell_pid")
	ask_answer
	[ "$answer" = open ] || fail "the client does not open: $answer"
}

ask_answer() {
	read -r -t "${ask_seconds:-30}" answer <&"${shell_io[0]}" || answer="nothing"
}

# ask COMMAND: sets $answer: "ok", "ok VALUE", or the error's name.
ask() {
	echo "$1" >&"${shell_io[1]}"
	ask_answer
}

# asks COMMAND ANSWER WHAT
asks() {
	ask "$1"
	[ "$answer" = "$2" ] || fail "$3: '$1' answers '$answer', expected '$2'"
	[ -z "$3" ] || ok "$3"
}
