/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the store. What changes while it runs is a request to the flusher.
 */
#ifndef QUERYPROF_STORE_SETTINGS_H
#define QUERYPROF_STORE_SETTINGS_H

struct store_config;

/* What store_init() needs of them. The path is malloc'ed; NULL: there is no memory. */
void store_settings(struct store_config *config);

#endif
