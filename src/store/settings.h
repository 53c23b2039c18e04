/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the store. While it runs, a change is a request to the flusher.
 */
#pragma once

struct store_config;

/* The settings that store_init() needs. The path is malloc'ed; NULL: out of memory. */
void store_settings(struct store_config *config);
