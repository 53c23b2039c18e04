/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated store that accepts any configuration, or none, and remembers the last one accepted. */
#ifndef TESTS_SQL_FAKE_STORE_H
#define TESTS_SQL_FAKE_STORE_H

#include "store/store.h"

extern const char *fake_store_refusal; /* NULL: the store accepts it */
extern int fake_store_calls;
extern bool fake_store_is_started;
extern struct store_config fake_store_config;
extern char fake_store_path[4096];

/* The last value of debug_path. */
extern char fake_debug_path[4096];

#endif
