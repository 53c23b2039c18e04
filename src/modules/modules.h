/*
 * What ELF objects the process has mapped, now and earlier.
 *
 * A snapshot is taken at start, after every dlopen and dlclose that we see, and
 * whenever the flusher finds the loader's own counters changed. Each snapshot has
 * a generation; a module knows in which generations it was mapped, so that an
 * address taken by a sample is read against the map of its moment.
 *
 * Not async-signal-safe; any thread otherwise. Inside, the loader is asked only
 * from these functions and never with a lock of ours held that a handler, or a
 * thread inside the loader, could need.
 */
#ifndef QUERYPROF_MODULES_MODULES_H
#define QUERYPROF_MODULES_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "modules/module_map.h"

/* Takes the first snapshot and publishes the code map. 0 or an errno value. */
int modules_init(void);

/* Takes a new snapshot if the loader's counters moved (`force`: anyway). True
 * when the generation changed. */
bool modules_refresh(bool force);

uint32_t modules_generation(void);

/* The module that held `address` in `generation`, NULL when none did. The result
 * stays valid until the process ends. */
const struct module *modules_find(uint64_t address, uint32_t generation);

/* Calls `each` for every module mapped now until it returns false. */
void modules_each(bool (*each)(void *context, const struct module *module), void *context);

/* For fork: the child starts with the parent's snapshot. */
void modules_before_fork(void);
void modules_after_fork(void);

#endif
