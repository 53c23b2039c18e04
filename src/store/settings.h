/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the store. What changes while it runs is a request to the flusher.
 */
#ifndef QUERYPROF_STORE_SETTINGS_H
#define QUERYPROF_STORE_SETTINGS_H

#include <stddef.h>

struct store_config;

/* What store_init() needs of them. The path is malloc'ed; NULL: there is no memory. */
void store_settings(struct store_config *config);

/* trace_log_ring_bytes, which is fixed for good when a ring has been made. */
size_t store_ring_bytes(void);
void store_ring_is_made(void);

#endif
