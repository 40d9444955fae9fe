# SPDX-License-Identifier: Apache-2.0
# Checks of the sources themselves.

add_test(NAME check.rooms COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check-rooms)
add_test(NAME check.rooms-finds-faults COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check-rooms-test)

# Every header compiles alone, and twice in one file; farkv.h also as C++.
file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
	${PROJECT_SOURCE_DIR}/layout/*.h ${PROJECT_SOURCE_DIR}/fabric/*.h
	${PROJECT_SOURCE_DIR}/fabric/softnic/*.h ${PROJECT_SOURCE_DIR}/mn/*.h
	${PROJECT_SOURCE_DIR}/cn/*.h ${PROJECT_SOURCE_DIR}/tools/*.h
	${PROJECT_SOURCE_DIR}/bench/*.h ${PROJECT_SOURCE_DIR}/tests/*.h)
set(header_sources "")
foreach(header ${headers})
	string(MAKE_C_IDENTIFIER ${header} name)
	set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.c)
	file(CONFIGURE OUTPUT ${source} CONTENT
		"#include \"${header}\"\n#include \"${header}\"\nextern int ${name}_;\n")
	list(APPEND header_sources ${source})
endforeach()
if(header_sources)
	add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${header_sources})
	target_link_libraries(check_headers PRIVATE farkv_compile PkgConfig::ibverbs
		PkgConfig::rdmacm PkgConfig::memcached PkgConfig::sodium PkgConfig::numa)
	target_compile_options(check_headers PRIVATE -Werror)
	add_test(NAME check.headers COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR}
		--target check_headers)
endif()

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
	add_test(NAME check.public-header-c++ COMMAND ${CMAKE_CXX_COMPILER} -fsyntax-only -xc++
		-std=c++11 -Wall -Wextra -pedantic -Werror ${PROJECT_SOURCE_DIR}/cn/farkv.h)
endif()
add_test(NAME check.public-header-c99 COMMAND ${CMAKE_C_COMPILER} -fsyntax-only -xc
	-std=c99 -Wall -Wextra -pedantic -Werror ${PROJECT_SOURCE_DIR}/cn/farkv.h)
foreach(test check.rooms check.rooms-finds-faults check.headers check.public-header-c++
		check.public-header-c99)
	if(TEST ${test})
		set_tests_properties(${test} PROPERTIES LABELS check TIMEOUT 120)
	endif()
endforeach()
# Two ninjas in one build directory would disturb each other.
set_tests_properties(check.headers PROPERTIES RESOURCE_LOCK build_directory)

# The units again, under the sanitizers, in build directories of their own.
if(NOT FARKV_SANITIZE)
	foreach(preset asan tsan)
		add_test(NAME sanitize.${preset}
			COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/sanitize ${preset})
		set_tests_properties(sanitize.${preset} PROPERTIES LABELS sanitize TIMEOUT 900
			PROCESSORS 2 FAIL_REGULAR_EXPRESSION "${sanitizer_report}")
	endforeach()
endif()
