/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules of virtual tables that are registered on a connection. SQLite has no interface to list them
 * with their methods, so the place of its list in a connection is found by trial, once per library.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sqlite/library/host.h"

/* SQLite's structures; none of it is public, and none of it has changed since 3.7. */
struct registered_module {
	const sqlite3_module *functions;
	const char *name;
};

struct module_element {
	const struct module_element *next, *previous;
	const struct registered_module *module;
	const char *name;
};

/* The beginning of the list, which changes if a module of a new name is registered. */
struct module_list {
	const struct module_element *first;
	uint32_t count;
};

/* `db`: a connection of queryprof. Returns the offset of the list in any connection, 0: not known. */
uint32_t module_list_find(const sqlite3_api_routines *api, sqlite3 *db);

/* Of a connection of the host, whose `at` was found. Follow `first` only under the connection's mutex. */
static inline struct module_list module_list_of(const sqlite3 *db, uint32_t at)
{
	struct module_list list;

	__builtin_memcpy(&list.first, (const char *)db + at, sizeof(list.first));
	__builtin_memcpy(&list.count, (const char *)db + at - sizeof(list.count), sizeof(list.count));
	return list;
}
