# SPDX-License-Identifier: Apache-2.0
# One libFuzzer program per decoder of remote data: tests/fuzz/fuzz_<decoder>.c with its corpus in
# tests/fuzz/corpus/<decoder>/. libFuzzer is clang's, so clang builds these whatever CC is.

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/fuzz_*.c)
if(NOT fuzz_sources OR FARKV_SANITIZE)
	return()
endif()
set(FARKV_FUZZ_SECONDS 30 CACHE STRING "How long each fuzzer runs")
file(GLOB layout_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/layout/*.c)
file(GLOB layout_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/layout/*.h
	${CMAKE_CURRENT_SOURCE_DIR}/fuzz/*.h)
set(fuzz_dir ${PROJECT_BINARY_DIR}/fuzz)
file(MAKE_DIRECTORY ${fuzz_dir})

set(fuzzers "")
foreach(source ${fuzz_sources})
	get_filename_component(name ${source} NAME_WE)
	string(REPLACE fuzz_ "" decoder ${name})
	add_custom_command(OUTPUT ${fuzz_dir}/${name}
		COMMAND clang -std=gnu11 -O1 -g -UNDEBUG -D_GNU_SOURCE -I${PROJECT_SOURCE_DIR}
			-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
			-o ${fuzz_dir}/${name} ${source} ${layout_sources} -lxxhash -lsodium
		DEPENDS ${source} ${layout_sources} ${layout_headers} VERBATIM
		COMMENT "Building ${name} with clang")
	list(APPEND fuzzers ${fuzz_dir}/${name})
	add_test(NAME fuzz.${decoder} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run
		${fuzz_dir}/${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${decoder}
		${FARKV_FUZZ_SECONDS})
	math(EXPR timeout "${FARKV_FUZZ_SECONDS} * 3 + 60")
	set_tests_properties(fuzz.${decoder} PROPERTIES LABELS fuzz FIXTURES_REQUIRED fuzzers
		TIMEOUT ${timeout} FAIL_REGULAR_EXPRESSION "${sanitizer_report}")
endforeach()
add_custom_target(fuzzers DEPENDS ${fuzzers})
add_test(NAME fuzz.build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target fuzzers)
set_tests_properties(fuzz.build PROPERTIES LABELS fuzz FIXTURES_SETUP fuzzers TIMEOUT 300
	RESOURCE_LOCK build_directory)
