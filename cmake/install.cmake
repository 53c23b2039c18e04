# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: the library, its headers, how pkg-config and
# find_package() find them, and the SQL files. The command's rules are in
# src/cmd/CMakeLists.txt. Included where the target `queryprof` is defined.
#
# The file is libqueryprof.so.0, as its SONAME; libqueryprof.so is a link to it. Programs
# are linked with the SONAME; as an extension and a preload the library is named by the
# link. The interface grows without breaking: every public struct carries its size.

include(CMakePackageConfigHelpers)

# Everything that `cmake --install` copies from the build, without the tests: what tools/demo builds.
add_custom_target(installed)
add_dependencies(installed queryprof queryprof_recorder queryprof_preload)

install(TARGETS queryprof EXPORT queryprof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS queryprof_preload queryprof_recorder LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET queryprof_musl)
  add_dependencies(installed queryprof_musl)
  install(TARGETS queryprof_musl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/src/queryprof.h ${PROJECT_SOURCE_DIR}/src/queryprof.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

foreach(document LICENSE THIRD-PARTY.md README.md CHANGELOG.md)
  install(FILES ${PROJECT_SOURCE_DIR}/${document} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/sql/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/queryprof/sql)

# SQL that a person can paste; the demo's own files need the demo.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sql/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/queryprof/sql
  FILES_MATCHING PATTERN "*.sql" PATTERN "*.sed" PATTERN "demo" EXCLUDE)

# find_package(queryprof) gives queryprof::queryprof. The exported targets are all
# there is to configure, so they are the package's configuration.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/queryprof)
install(EXPORT queryprof NAMESPACE queryprof:: FILE queryprof-config.cmake DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/queryprof-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/queryprof-config-version.cmake DESTINATION ${package_dir})

# The paths in queryprof.pc are relative to where it lies, so that the installed
# tree can be moved (`cmake --install --prefix` is such a move).
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH QUERYPROF_PREFIX_FROM_PC /${pkgconfig_dir} /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/queryprof.pc.in ${PROJECT_BINARY_DIR}/queryprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/queryprof.pc DESTINATION ${pkgconfig_dir})
