# SPDX-License-Identifier: Apache-2.0
# queryprof_link_glibc(TARGET): links TARGET so that it runs with glibc QUERYPROF_GLIBC and later, whatever version the
# building machine has (cmake/glibc/make_stubs). If the variable is empty, TARGET needs the machine's version or later.
set(oldest 2.28)
if(QUERYPROF_SANITIZE OR QUERYPROF_COVERAGE) # their run-time libraries need the machine's glibc
  set(oldest "")
endif()
set(QUERYPROF_GLIBC "${oldest}" CACHE STRING "The oldest glibc that what is built runs with; empty: this machine's")

if(QUERYPROF_GLIBC)
  set(stubs ${PROJECT_BINARY_DIR}/glibc)
  set(make_stubs ${CMAKE_CURRENT_LIST_DIR}/glibc/make_stubs)
  add_custom_command(OUTPUT ${stubs}/libc.so ${stubs}/libm.so
    COMMAND ${make_stubs} ${QUERYPROF_GLIBC} ${CMAKE_C_COMPILER} ${CMAKE_READELF} ${stubs}
    DEPENDS ${make_stubs}
    COMMENT "Making the interface of glibc ${QUERYPROF_GLIBC}"
    VERBATIM)
  add_custom_target(queryprof_glibc DEPENDS ${stubs}/libc.so ${stubs}/libm.so)
endif()

function(queryprof_link_glibc target)
  if(QUERYPROF_GLIBC)
    add_dependencies(${target} queryprof_glibc)
    target_link_directories(${target} BEFORE PRIVATE ${PROJECT_BINARY_DIR}/glibc)
    set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON) # the stubs are for the linker, not for the loader
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${PROJECT_BINARY_DIR}/glibc/libc.so)
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/glibc/check_versions ${QUERYPROF_GLIBC} ${CMAKE_OBJDUMP} $<TARGET_FILE:${target}>
      VERBATIM)
  endif()
endfunction()
