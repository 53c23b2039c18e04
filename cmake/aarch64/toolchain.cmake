# SPDX-License-Identifier: Apache-2.0
# The preset aarch64 uses Debian's cross compiler, and a root with Debian's arm64 libraries (make_root).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(QUERYPROF_TOOL_PREFIX aarch64-linux-gnu-)
set(CMAKE_C_COMPILER ${QUERYPROF_TOOL_PREFIX}gcc)
set(CMAKE_CXX_COMPILER ${QUERYPROF_TOOL_PREFIX}g++)

execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/make_root
  OUTPUT_VARIABLE CMAKE_SYSROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the arm64 packages could not be fetched")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT}) # for programs that the build makes and runs
