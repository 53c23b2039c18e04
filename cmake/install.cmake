# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` installs: the libraries, the headers, the files by which
# pkg-config and find_package() find them, documents and SQL files. The command's rules
# are in src/cmd/CMakeLists.txt. The folder that defines the target `queryprof` includes
# this file.
#
# The library is libqueryprof.so.0, which is its SONAME and which linked programs load.
# libqueryprof.so is a link to it, for load_extension() and the linker.

include(CMakePackageConfigHelpers)

# Builds everything that `cmake --install` copies, without the tests.
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

# SQL that users can run. The files of the demo need the demo's database.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sql/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/queryprof/sql
  FILES_MATCHING PATTERN "*.sql" PATTERN "*.sed" PATTERN "demo" EXCLUDE)

# find_package(queryprof) defines queryprof::queryprof. The file of exported targets is
# also the package's configuration file, because nothing else needs configuration.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/queryprof)
install(EXPORT queryprof NAMESPACE queryprof:: FILE queryprof-config.cmake DESTINATION ${package_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/queryprof-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/queryprof-config-version.cmake DESTINATION ${package_dir})

# The paths in queryprof.pc are relative to its folder, so that the installed tree can
# be moved, for example by `cmake --install --prefix`.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH QUERYPROF_PREFIX_FROM_PC /${pkgconfig_dir} /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/queryprof.pc.in ${PROJECT_BINARY_DIR}/queryprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/queryprof.pc DESTINATION ${pkgconfig_dir})
