# SPDX-License-Identifier: Apache-2.0
# FARKV_COMMIT: what benchmarks print. "unknown" outside a checkout.
set(FARKV_COMMIT unknown)
find_program(GIT_PROGRAM git)
if(GIT_PROGRAM AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
	execute_process(COMMAND ${GIT_PROGRAM} describe --always --tags --abbrev=12
		WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE describe
		OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
	if(result EQUAL 0)
		set(FARKV_COMMIT ${describe})
	endif()
	# Configure again when HEAD moves.
	execute_process(COMMAND ${GIT_PROGRAM} rev-parse --git-path logs/HEAD
		WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE head_log
		OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	cmake_path(ABSOLUTE_PATH head_log BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
	if(EXISTS ${head_log} AND NOT IS_DIRECTORY ${head_log})
		set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY
			CMAKE_CONFIGURE_DEPENDS ${head_log})
	endif()
endif()
foreach(target farkv-bench farkv_bench_core)
	if(TARGET ${target})
		target_compile_definitions(${target} PRIVATE FARKV_COMMIT="${FARKV_COMMIT}")
	endif()
endforeach()
