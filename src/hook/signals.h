/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions by which the host sets signals and waits for them: they notify the sampler if it is
 * the signal of queryprof's timers.
 */
#pragma once

#include "hook/import.h"

#define SIGNALS_HOOKS_MAX 7

/* Fills the hooks; returns their number. */
int signals_hooks(struct import_hook hooks[SIGNALS_HOOKS_MAX]);
