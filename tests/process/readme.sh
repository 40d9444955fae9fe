#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The first program in README.md compiles against the installed package and works; so do the
# static library and the CMake package.
. "$(dirname "$0")/lib.sh"
prefix=$work/usr source=$work/program.c
cmake --install "${BUILD:-$root/build}" --prefix "$prefix" >/dev/null
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
for dir in "$prefix"/lib/*/pkgconfig; do
	[ ! -d "$dir" ] || PKG_CONFIG_PATH+=:$dir LD_LIBRARY_PATH+=:${dir%/pkgconfig}
done
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$root/README.md" > "$source"
[ -s "$source" ] || fail "README.md has no C program"

memcached_start
mn_start 1
export FARKV_CLUSTER=$cluster FARKV_MEMCACHED=$memcached FARKV_DEVICE=$device

works() {
	run "$work/program" "${@:2}"
	exits 0 "the README's program, $1, works: $out"
}
# shellcheck disable=SC2046
cc -o "$work/program" "$source" $(pkg-config --cflags --libs farkv)
ldd "$work/program" | grep -q "$prefix.*libfarkv.so.0" || fail "not linked with the installed library"
works "with pkg-config"

libdir=$(pkg-config --variable=libdir farkv)
# shellcheck disable=SC2046
cc -o "$work/program" "$source" $(pkg-config --cflags farkv) "$libdir/libfarkv.a" \
	$(pkg-config --libs libibverbs librdmacm libmemcached libxxhash libsodium numa) -pthread
works "with the static library"

"$prefix/bin/farkv" --version >/dev/null || fail "the installed farkv does not run"
ok "the installed farkv runs"
[ "$device" = softnic ] || exit 0 # compilers are slow in the guest, and say the same

mkdir "$work/user"
cp "$source" "$work/user/program.c"
cat > "$work/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(farkv 0.1 REQUIRED)
add_executable(shared program.c)
target_link_libraries(shared farkv::farkv)
add_executable(static program.c)
target_link_libraries(static farkv::farkv_static)
CMAKE
cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log"
cmake --build "$work/user/build" >>"$work/cmake.log"
for kind in shared static; do
	cp "$work/user/build/$kind" "$work/program"
	works "with the CMake package, $kind"
done

if command -v c++ >/dev/null; then
	printf '#include <farkv.h>\nint main() { return farkv_version() == nullptr; }\n' > "$work/p.cc"
	# shellcheck disable=SC2046
	c++ -std=c++11 -o "$work/program" "$work/p.cc" $(pkg-config --cflags --libs farkv)
	works "in C++"
fi
