/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/module_list.h"

#include <string.h>

#include "handler/unwind/stack_copy.h"

#define CONNECTION_BYTES 0x400u /* the searched part */
#define MODULES_MAX 200u        /* of a library, on a new connection */

static const char trial_name[] = "queryprof_trial";

/* Whether the list has so many elements, and one of them is the module. */
static bool is_list(const struct module_list *list, const sqlite3_module *wanted)
{
	const struct module_element *at = list->first, *before = NULL;
	bool has_it = false;
	uint32_t count = 0;

	if (!list->count || list->count > MODULES_MAX)
		return false;
	for (; at && count < list->count; count++) {
		struct registered_module module;
		struct module_element element;
		char name[sizeof(trial_name)];
		size_t size;

		if (!stack_copy_part((uintptr_t)at, &element, sizeof(element)) ||
		    element.previous != before ||
		    !stack_copy_part((uintptr_t)element.module, &module, sizeof(module)))
			return false;
		if (module.functions == wanted)
			has_it = stack_copy_text(module.name, name, sizeof(name), &size) &&
			         size == sizeof(trial_name) - 1 && !memcmp(name, trial_name, size);
		before = at;
		at = element.next;
	}
	return has_it && !at && count == list->count;
}

uint32_t module_list_find(const sqlite3_api_routines *api, sqlite3 *db)
{
	static const sqlite3_module trial = { .iVersion = 1 };
	struct module_list list;
	uint32_t found = 0;

	if (api->create_module(db, trial_name, &trial, NULL) != SQLITE_OK)
		return 0;
	for (uint32_t at = sizeof(void *); at < CONNECTION_BYTES; at += sizeof(void *)) {
		if (!stack_copy_part((uintptr_t)db + at - sizeof(uint32_t), &list.count, sizeof(uint32_t)) ||
		    !stack_copy_part((uintptr_t)db + at, &list.first, sizeof(list.first)))
			return 0;
		if (!is_list(&list, &trial))
			continue;
		if (found)
			return 0;
		found = at;
	}
	return found;
}
