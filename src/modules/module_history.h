/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of a process over its life: the mapped ones, and earlier ones.
 */
#pragma once

#include "base/vector.h"
#include "modules/module_map.h"

/* Starts as { 0 }. Does not own the modules. */
struct module_history {
	struct module_map mapped;
	VECTOR(struct module *) dead; /* the newest death last */
};

/* The module that had `address` in `generation`, NULL if none had. */
const struct module *module_history_find(const struct module_history *history, uint64_t address,
                                         uint32_t generation);

void module_history_free(struct module_history *history);
