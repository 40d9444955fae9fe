# SPDX-License-Identifier: Apache-2.0
# How everything is compiled, and what it is linked with.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
set(missing "")
foreach(pair ibverbs=libibverbs rdmacm=librdmacm memcached=libmemcached xxhash=libxxhash
		sodium=libsodium numa=numa jansson=jansson)
	string(REPLACE "=" ";" pair ${pair})
	list(GET pair 0 name)
	list(GET pair 1 module)
	pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
	if(NOT ${name}_FOUND)
		list(APPEND missing ${module})
	endif()
endforeach()
if(missing)
	list(JOIN missing " " missing)
	message(FATAL_ERROR "pkg-config does not find: ${missing}. Run tools/install-deps.")
endif()

# Carried by every target of ours, by no user of the library.
add_library(farkv_compile INTERFACE)
target_include_directories(farkv_compile INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(farkv_compile INTERFACE _GNU_SOURCE)
# -UNDEBUG: asserts stay on in every build type.
target_compile_options(farkv_compile INTERFACE -UNDEBUG -fno-common
	-Wall -Wextra -Wshadow -Wstrict-prototypes $<$<BOOL:${FARKV_WERROR}>:-Werror>)
target_link_libraries(farkv_compile INTERFACE Threads::Threads)

if(FARKV_SANITIZE)
	string(REPLACE ";" "," sanitizers "${FARKV_SANITIZE}")
	add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${sanitizers})
	# Fences are not understood by ThreadSanitizer; what they order here are atomics.
	if("thread" IN_LIST FARKV_SANITIZE)
		add_compile_options(-Wno-tsan)
	endif()
	if("undefined" IN_LIST FARKV_SANITIZE)
		add_compile_options(-fno-sanitize-recover=undefined)
	endif()
endif()
