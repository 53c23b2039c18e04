/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/library/auto_extensions.h"

#include <link.h>

#include "base/debug.h"
#include "base/loader.h"
#include "handler/unwind/stack_copy.h"

#define WORD sizeof(uintptr_t)
#define LIST_MAX 32u
#define DATA_MAX 4
#define DATA_BYTES_MAX ((uintptr_t)64 << 20) /* a program's data may have no known end */

struct range {
	uintptr_t start, end;
};

struct search {
	const struct host_library *library;
	struct range data[DATA_MAX]; /* the library's */
	int data_count;
	int others;      /* extensions of others; -1: the list was not found */
	uintptr_t *list; /* SQLite's: a number in half of a word, and the array in the next one */
};

static uintptr_t own[OWN_EXTENSIONS_MAX]; /* atomic */

void auto_extensions_add_own(void (*extension)(void))
{
	for (int i = 0; i < OWN_EXTENSIONS_MAX; i++) {
		uintptr_t found = 0;

		if (__atomic_compare_exchange_n(&own[i], &found, (uintptr_t)extension, false,
		                                __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
		    found == (uintptr_t)extension)
			return;
	}
}

bool auto_extensions_has_own(void (*extension)(void))
{
	bool is_found = false;

	for (int i = 0; i < OWN_EXTENSIONS_MAX; i++)
		is_found |= __atomic_load_n(&own[i], __ATOMIC_RELAXED) == (uintptr_t)extension;
	return is_found;
}

/* Another thread may open a connection just now. */
static int probe(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
	(void)db, (void)error, (void)api;
	return SQLITE_OK;
}

static bool is_in(const struct range *range, uintptr_t address)
{
	return address - range->start < range->end - range->start;
}

static struct range range_of(const struct dl_phdr_info *info, const ElfW(Phdr) *segment)
{
	const uintptr_t start = info->dlpi_addr + segment->p_vaddr;

	return (struct range){ start, start + segment->p_memsz };
}

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;
	struct range image = { UINTPTR_MAX, 0 };

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const struct range range = range_of(info, &info->dlpi_phdr[i]);

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		image.start = range.start < image.start ? range.start : image.start;
		image.end = range.end > image.end ? range.end : image.end;
	}
	if (!is_in(&image, search->library->start))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && search->data_count < DATA_MAX; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_W)
			search->data[search->data_count++] = range_of(info, &info->dlpi_phdr[i]);
	return 0;
}

/* The number of extensions in an array that do not belong to queryprof. -1: it is a different array. */
static int count_others(uint32_t count, uintptr_t array)
{
	uintptr_t functions[LIST_MAX];
	bool has_probe = false;
	int others = 0;

	if (!count || count > LIST_MAX || array < STACK_COPY_BYTES || array % WORD ||
	    !stack_copy_part(array, functions, count * WORD))
		return -1;
	for (uint32_t i = 0; i < count; i++) {
		const bool is_probe = functions[i] == (uintptr_t)probe;

		has_probe |= is_probe;
		others += !is_probe && !auto_extensions_has_own((void (*)(void))functions[i]);
	}
	return has_probe ? others : -1;
}

static void search_data(struct search *search, const struct range *data)
{
	uintptr_t words[STACK_COPY_BYTES / WORD], before = 0;
	uintptr_t at = data->start & ~(WORD - 1), end = data->end & ~(WORD - 1), size;

	if (end - at > DATA_BYTES_MAX)
		end = at + DATA_BYTES_MAX;
	for (; at < end; at += size) {
		size = STACK_COPY_BYTES - at % STACK_COPY_BYTES;
		size = size < end - at ? size : end - at;
		if (!stack_copy_part(at, words, size))
			continue;
		for (size_t i = 0; i < size / WORD; before = words[i++]) {
			search->others = count_others((uint32_t)before, words[i]);
			if (search->others >= 0) {
				search->list = (uintptr_t *)at + i - 1;
				return;
			}
		}
	}
}

/* A list that is emptied keeps its memory, which the host can see (sqlite3_memory_used()), unless it is
 * reset. */
static void remove_probe(const sqlite3_api_routines *api, const uintptr_t *list)
{
	uintptr_t number;

	if (list && stack_copy_part((uintptr_t)list, &number, WORD) && (uint32_t)number == 1)
		api->reset_auto_extension();
	else
		api->cancel_auto_extension((void (*)(void))probe);
}

bool auto_extensions_are_own(const struct host_library *library)
{
	const sqlite3_api_routines *api = host_api(library);
	struct search search = { .library = library, .others = -1 };

	if (api->auto_extension((void (*)(void))probe) != SQLITE_OK)
		return false;
	loader_each(see_object, &search);
	for (int i = 0; i < search.data_count && search.others < 0; i++)
		search_data(&search, &search.data[i]);
	remove_probe(api, search.list);
	debug_log(DEBUG_HOOKS, "%s: automatic extensions that are not queryprof's: %d", library->name,
	          search.others);
	return search.others == 0;
}
