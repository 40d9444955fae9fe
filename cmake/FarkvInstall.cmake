# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

foreach(program farkv-mn farkv farkv-bench)
	if(TARGET ${program})
		install(TARGETS ${program} RUNTIME)
	endif()
endforeach()
file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.[1-8])
foreach(page ${man_pages})
	string(REGEX MATCH "[1-8]$" section ${page})
	install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

if(NOT TARGET farkv_shared)
	return()
endif()

install(TARGETS farkv_shared farkv_static EXPORT farkv LIBRARY ARCHIVE FILE_SET HEADERS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/farkv)
install(EXPORT farkv NAMESPACE farkv:: FILE farkvTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/farkvConfig.cmake.in
	farkvConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(farkvConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/farkvConfig.cmake
	${CMAKE_CURRENT_BINARY_DIR}/farkvConfigVersion.cmake DESTINATION ${package_dir})

# The .pc file finds its prefix from its own place, so that the installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
	OUTPUT_VARIABLE pc_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
	OUTPUT_VARIABLE pc_includedir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
	BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_prefix)
configure_file(cmake/farkv.pc.in farkv.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/farkv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
