/*
 * Words of the loader's memory that tell, without a lock, that something was mapped
 * or unmapped: see handler/unwind/code_map.h for what they are good for.
 */
#ifndef QUERYPROF_MODULES_WATCH_H
#define QUERYPROF_MODULES_WATCH_H

#include <stdint.h>

#include "handler/unwind/code_map.h"

/* Finds the memory to look at. Takes the loader's lock: not from a callback of it. */
void watch_init(void);

/* Fills `watch` with the words and what they hold now; returns their number. Only
 * while the loader holds its lock for us (dl_iterate_phdr), which also gave the
 * counters. */
uint32_t watch_take(uint64_t adds, uint64_t subs, struct code_watch watch[CODE_MAP_WATCHES]);

#endif
