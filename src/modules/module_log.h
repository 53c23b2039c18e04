/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a process's modules in memory that outlives the process: a log to which the process
 * appends, and from which another one restores the history. The addresses in a sample mean nothing
 * without it.
 */
#pragma once

#include "modules/module_history.h"

struct module_log;

/* An empty log in zero-filled memory. */
struct module_log *module_log_make(void *memory, size_t size);

/* Appends what a module is; again when it has died. */
void module_log_add(struct module_log *log, const struct module *module);

/* All modules of the generation are in the log. */
void module_log_end_generation(struct module_log *log, uint32_t generation);

/* Bytes in use. They never change any more. */
size_t module_log_size(const struct module_log *log);

/* The last complete generation. */
uint32_t module_log_generation(const struct module_log *log);

/* The history in a log of `size` bytes; module_log_free() frees it. `*generation`: the last
 * complete one. False: out of memory. */
bool module_log_read(const struct module_log *log, size_t size, struct module_history *history,
                     uint32_t *generation);
void module_log_free(struct module_history *history);
