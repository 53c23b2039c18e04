/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF objects that the process has mapped, now and earlier.
 *
 * modules_init() takes the first snapshot. modules_refresh() takes the next if necessary: for the
 * flusher if the loader's own counters have changed, for tables of modules and symbols, when a SQLite
 * inside a program is adopted, and for an address in no known module. Each snapshot has a generation,
 * and a module has the generations in which it was mapped, so that an address in a sample is looked
 * up in the map of its moment.
 *
 * Not async-signal-safe; any thread otherwise. Only these functions call the loader, and meanwhile
 * they hold no lock that a handler, or a thread inside the loader, could need.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "modules/module_map.h"

struct module_log;

/* Takes the first snapshot and publishes the code map. Returns 0 or an errno value. */
int modules_init(void);

/* The log gets the current, earlier and later modules. It remains. */
void modules_log_to(struct module_log *log);
void modules_log_to_nobody_in_child(void);

/* Takes a new snapshot if the loader's counters have moved (`force`: in any case). True if
 * the generation has changed. */
bool modules_refresh(bool force);

uint32_t modules_generation(void);

/* The module that had `address` in `generation`, NULL if none had. The result stays valid
 * until the process ends. */
const struct module *modules_find(uint64_t address, uint32_t generation);

/* Calls `each` for every module mapped now until it returns false. */
void modules_each(bool (*each)(void *context, const struct module *module), void *context);
