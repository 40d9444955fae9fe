# SPDX-License-Identifier: Apache-2.0
# A room is a folder; a file added to it is built without an edit here.

# room_sources(OUT PATTERN [EXCLUDE FILE...]): the room's .c files, relative to the root.
function(room_sources out pattern)
	cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "EXCLUDE")
	file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
		${PROJECT_SOURCE_DIR}/${pattern})
	list(REMOVE_ITEM sources "" ${arg_EXCLUDE})
	set(${out} ${sources} PARENT_SCOPE)
endfunction()

# Links those of the given targets that exist: a room may still be empty.
function(link_existing target visibility)
	foreach(library ${ARGN})
		if(TARGET ${library} OR library STREQUAL "m")
			target_link_libraries(${target} ${visibility} ${library})
		endif()
	endforeach()
endfunction()

# room_main(OUT PATTERN): the room's file with main().
function(room_main out pattern)
	room_sources(sources ${pattern})
	foreach(source ${sources})
		file(STRINGS ${PROJECT_SOURCE_DIR}/${source} found REGEX "^(int )?main\\(")
		if(found)
			set(${out} ${source} PARENT_SCOPE)
			return()
		endif()
	endforeach()
	set(${out} "" PARENT_SCOPE)
endfunction()

# room_objects(NAME PATTERN [EXCLUDE FILE...] [LINK TARGET...]): object library farkv_NAME.
# Objects of another room come in once, through the libraries made of them.
function(room_objects name pattern)
	cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "EXCLUDE;LINK")
	room_sources(sources ${pattern} EXCLUDE ${arg_EXCLUDE})
	if(NOT sources)
		message(STATUS "farkv_${name}: no sources yet, left out")
		return()
	endif()
	add_library(farkv_${name} OBJECT ${sources})
	target_link_libraries(farkv_${name} PRIVATE farkv_compile ${arg_LINK})
endfunction()

# room_program(NAME PATTERN CORE LIBRARY [LINK TARGET...]): a program in build/bin, and a static
# library of all its files but the one with main().
function(room_program name pattern)
	cmake_parse_arguments(PARSE_ARGV 2 arg "" "CORE" "LINK")
	room_sources(sources ${pattern})
	room_main(main ${pattern})
	list(REMOVE_ITEM sources "" ${main})
	if(sources)
		add_library(${arg_CORE} STATIC ${sources})
		target_link_libraries(${arg_CORE} PRIVATE farkv_compile)
		link_existing(${arg_CORE} PUBLIC ${arg_LINK})
	endif()
	if(NOT main)
		message(STATUS "${name}: no main() yet, left out")
		return()
	endif()
	add_executable(${name} ${main})
	target_link_libraries(${name} PRIVATE farkv_compile)
	link_existing(${name} PRIVATE ${arg_CORE} ${arg_LINK})
endfunction()
