/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space of this process's own trace file.
 */
#pragma once

#include "frames/address.h"

/* Knows the modules of the file, those that are mapped now, and the map that a JIT compiler in
 * this process wrote (perf_map.h). */
const struct address_space *process_space(void);
