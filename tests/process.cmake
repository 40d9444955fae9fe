# SPDX-License-Identifier: Apache-2.0
# Scripts on whole processes, with a real memcached: tests/process/*.sh. Lines at the head of a
# script: "# timeout: SECONDS" (default 120), "# label: long". Each runs on the software NIC, and
# once more in a Soft-RoCE guest, where all of them share one boot.

file(GLOB scripts CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/process
	${CMAKE_CURRENT_SOURCE_DIR}/process/*.sh)
list(REMOVE_ITEM scripts lib.sh)
if(TARGET farkv_shared)
	add_executable(kv_shell kv_shell.c)
	target_link_libraries(kv_shell PRIVATE farkv_compile farkv_shared)
endif()
set(environment BIN=${PROJECT_BINARY_DIR}/bin BUILD=${PROJECT_BINARY_DIR})
set(guest_dir ${PROJECT_BINARY_DIR}/guest)

# guest_run(NAME LABEL TIMEOUT COMMAND...): the run of a guest, set-up of the fixture NAME.
function(guest_run name label timeout)
	add_test(NAME ${name}.boot COMMAND ${ARGN})
	set_tests_properties(${name}.boot PROPERTIES LABELS "${label}" TIMEOUT ${timeout}
		FIXTURES_SETUP ${name} SKIP_RETURN_CODE 77 PROCESSORS 2 ENVIRONMENT "${environment}")
endfunction()

# guest_result(NAME DIR TEST): what TEST did in the guest NAME.
function(guest_result name dir test)
	add_test(NAME ${name}.${test}
		COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/guest/result ${dir} ${test})
	set_tests_properties(${name}.${test} PROPERTIES FIXTURES_REQUIRED ${name}
		SKIP_RETURN_CODE 77 TIMEOUT 20)
endfunction()

set(guest_scripts "")
set(guest_scripts_long "")
foreach(script ${scripts})
	string(REPLACE ".sh" "" name ${script})
	set(path ${CMAKE_CURRENT_SOURCE_DIR}/process/${script})
	set(timeout 120)
	set(label "")
	file(STRINGS ${path} head LIMIT_COUNT 12 REGEX "^# (timeout|label): ")
	foreach(line ${head})
		if(line MATCHES "^# timeout: ([0-9]+)$")
			set(timeout ${CMAKE_MATCH_1})
		elseif(line MATCHES "^# label: ([a-z]+)$")
			set(label ${CMAKE_MATCH_1})
		endif()
	endforeach()
	set(labels process ${label})
	add_test(NAME process.${name} COMMAND ${path})
	set_tests_properties(process.${name} PROPERTIES LABELS "${labels}"
		TIMEOUT ${timeout} SKIP_RETURN_CODE 77 PROCESSORS 2
		ENVIRONMENT "${environment};FARKV_DEVICE=softnic"
		FAIL_REGULAR_EXPRESSION "${sanitizer_report}")
	if(label STREQUAL long)
		list(APPEND guest_scripts_long ${name})
	else()
		list(APPEND guest_scripts ${name})
	endif()
endforeach()

# The sanitizers and the guests' software CPU together would take too long.
if(FARKV_SANITIZE)
	return()
endif()
set(guest ${CMAKE_CURRENT_SOURCE_DIR}/guest)
if(guest_scripts)
	guest_run(guest guest 900 ${guest}/boot ${guest_dir} 840 ${guest_scripts})
	foreach(name ${guest_scripts})
		guest_result(guest ${guest_dir} ${name})
		set_tests_properties(guest.${name} PROPERTIES LABELS guest)
	endforeach()
endif()
if(guest_scripts_long)
	guest_run(guest-long "guest;long" 2700 ${guest}/boot ${guest_dir}-long 2600 ${guest_scripts_long})
	foreach(name ${guest_scripts_long})
		guest_result(guest-long ${guest_dir}-long ${name})
		set_tests_properties(guest-long.${name} PROPERTIES LABELS "guest;long")
	endforeach()
endif()

add_test(NAME guests.two COMMAND ${guest}/two)
set_tests_properties(guests.two PROPERTIES LABELS guest TIMEOUT 420 SKIP_RETURN_CODE 77
	PROCESSORS 2 ENVIRONMENT "${environment}")
