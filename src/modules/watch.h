/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of the loader's memory that change when an object is mapped or unmapped. The
 * handler reads them without a lock (base/code_map.h).
 */
#pragma once

#include <stdint.h>

#include "base/code_map.h"

/* Finds the memory to watch. Takes the loader's lock, so not from a callback of the
 * loader. */
void watch_init(void);

/* Fills `watch` with the words and their present values; returns their number. Only in a
 * callback of loader_each(), which holds the loader's lock and gives the counters. */
uint32_t watch_adopt(uint64_t adds, uint64_t subs, struct code_watch watch[CODE_MAP_WATCHES]);
