# SPDX-License-Identifier: Apache-2.0
# The libraries made of the rooms' objects:
#   farkv_core     layout and fabric, for the memory node            (not installed)
#   farkv_client   farkv_core and cn with internals in reach, for
#                  tools, bench and tests                            (not installed)
#   farkv_shared   libfarkv.so, exporting farkv_* only
#   farkv_static   libfarkv.a, the same as one object whose other symbols are local

set(core_objects "")
foreach(room layout fabric softnic)
	if(TARGET farkv_${room})
		list(APPEND core_objects $<TARGET_OBJECTS:farkv_${room}>)
	endif()
endforeach()
set(farkv_dependencies PkgConfig::ibverbs PkgConfig::rdmacm PkgConfig::memcached
	PkgConfig::xxhash PkgConfig::sodium PkgConfig::numa)

if(core_objects)
	add_library(farkv_core STATIC ${core_objects})
	set_target_properties(farkv_core PROPERTIES LINKER_LANGUAGE C)
	target_link_libraries(farkv_core PUBLIC ${farkv_dependencies} Threads::Threads)
endif()

if(core_objects AND TARGET farkv_cn)
	add_library(farkv_client STATIC $<TARGET_OBJECTS:farkv_cn>)
	set_target_properties(farkv_client PROPERTIES LINKER_LANGUAGE C)
	target_link_libraries(farkv_client PUBLIC farkv_core)

	set(all_objects ${core_objects} $<TARGET_OBJECTS:farkv_cn>)
	set(version_script ${PROJECT_SOURCE_DIR}/cn/farkv.map)
	add_library(farkv_shared SHARED ${all_objects})
	target_link_libraries(farkv_shared PRIVATE ${farkv_dependencies} Threads::Threads)
	target_link_options(farkv_shared PRIVATE -Wl,--version-script=${version_script}
		-Wl,--as-needed $<$<NOT:$<BOOL:${FARKV_SANITIZE}>>:-Wl,--no-undefined>)
	set_target_properties(farkv_shared PROPERTIES OUTPUT_NAME farkv EXPORT_NAME farkv
		LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${version_script})

	# Hidden symbols of an archive would still clash with the user's own; local ones cannot.
	set(single_object ${PROJECT_BINARY_DIR}/farkv_single.o)
	add_custom_command(OUTPUT ${single_object}
		COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${single_object}.tmp ${all_objects}
		COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${single_object}.tmp ${single_object}
		DEPENDS ${all_objects} COMMAND_EXPAND_LISTS VERBATIM
		COMMENT "Joining the objects of libfarkv.a")
	add_library(farkv_static STATIC ${single_object})
	set_target_properties(farkv_static PROPERTIES OUTPUT_NAME farkv LINKER_LANGUAGE C)
	target_link_libraries(farkv_static INTERFACE ${farkv_dependencies} Threads::Threads)

	foreach(library farkv_shared farkv_static)
		target_sources(${library} PUBLIC FILE_SET HEADERS
			BASE_DIRS ${PROJECT_SOURCE_DIR}/cn FILES ${PROJECT_SOURCE_DIR}/cn/farkv.h)
		add_library(farkv::${library} ALIAS ${library})
	endforeach()
	add_library(farkv::farkv ALIAS farkv_shared)
endif()
