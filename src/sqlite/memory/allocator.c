/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/memory/allocator.h"

#include <link.h>
#include <string.h>

#include "base/debug.h"
#include "base/loader.h"
#include "base/lock.h"
#include "collect/state.h"
#include "hook/hook.h"
#include "sqlite/static/object.h"
#include "timers/memory_sample.h"

/* As that of locks/file_methods.c: a thread that opens a connection does not wait for it. */
LOCK_DEFINE(lock, LOCK_ALLOCATORS, .at_fork = LOCK_LEFT);

/* Once the methods are known, they are not read again: by then they may be the replacements, or the host's
 * that call these. */
static struct allocator {
	sqlite3_mem_methods *methods; /* SQLite's; NULL: not found yet */
	sqlite3_mem_methods real;
	bool was_searched;
} allocators[HOST_LIBRARIES_MAX];

/* --- the replacements ------------------------------------------------------------------ */

/* The rare part is a function of its own, so that the usual call saves no registers for it. */
static __attribute__((noinline, cold)) void free_sampled(const struct allocator *allocator, void *block)
{
	struct memory_block taken;

	if (memory_blocks_take(block, &taken))
		memory_sample_freed(&taken);
	allocator->real.xFree(block);
}

/* The frames of the first and the last are not in the stacks of samples, so these are no tail calls. */
#define REPLACEMENTS(number)                                                                                 \
	static void *queryprof_malloc_##number(int size)                                                     \
	{                                                                                                    \
		void *block = allocators[number].real.xMalloc(size);                                         \
		memory_allocated(block, (size_t)size);                                                       \
		return block;                                                                                \
	}                                                                                                    \
	static void queryprof_free_##number(void *block)                                                     \
	{                                                                                                    \
		if (__builtin_expect(memory_blocks_may_have(block), 0))                                      \
			free_sampled(&allocators[number], block);                                            \
		else                                                                                         \
			allocators[number].real.xFree(block);                                                \
	}                                                                                                    \
	static void *queryprof_realloc_##number(void *block, int size)                                       \
	{                                                                                                    \
		struct memory_block taken;                                                                   \
		const bool is_taken = memory_blocks_may_have(block) && memory_blocks_take(block, &taken);    \
		void *moved = allocators[number].real.xRealloc(block, size);                                 \
		if (is_taken && moved)                                                                       \
			memory_sample_freed(&taken);                                                         \
		else if (is_taken)                                                                           \
			memory_put_back(&taken);                                                             \
		memory_allocated(moved, (size_t)size);                                                       \
		return moved;                                                                                \
	}
REPLACEMENTS(0)
REPLACEMENTS(1)
REPLACEMENTS(2)
REPLACEMENTS(3)

#define OURS(number)                                                                                         \
	{                                                                                                    \
		.xMalloc = queryprof_malloc_##number, .xFree = queryprof_free_##number,                      \
		.xRealloc = queryprof_realloc_##number                                                       \
	}
static const sqlite3_mem_methods ours[HOST_LIBRARIES_MAX] = { OURS(0), OURS(1), OURS(2), OURS(3) };
_Static_assert(HOST_LIBRARIES_MAX == 4, "replacements for each library");

/* Frees first and last, so that no sampled block is freed without being seen. */
static void replace(sqlite3_mem_methods *methods, const sqlite3_mem_methods *from,
                    const sqlite3_mem_methods *to, bool is_restored)
{
	const struct hook_slot slots[] = {
		{ (void **)(uintptr_t)&methods->xMalloc, (void *)from->xMalloc, (void *)to->xMalloc },
		{ (void **)(uintptr_t)&methods->xRealloc, (void *)from->xRealloc, (void *)to->xRealloc },
		{ (void **)(uintptr_t)&methods->xFree, (void *)from->xFree, (void *)to->xFree },
	};
	const int last = (int)(sizeof(slots) / sizeof(slots[0])) - 1;

	for (int i = 0; i <= last; i++) {
		const struct hook_slot *slot = &slots[is_restored ? i : last - i];

		if (*slot->at == slot->value)
			continue;
		/* What the host has put there remains. */
		if (*slot->at != slot->was || !hook_try_set(slot, 1))
			return;
	}
}

/* --- where the methods are ------------------------------------------------------------- */

/* A part of struct Sqlite3Config. */
struct configuration {
	sqlite3_mem_methods memory;
	sqlite3_mutex_methods mutexes;
	sqlite3_pcache_methods2 page_cache;
};
#define WORD(type, member) (offsetof(type, member) / sizeof(uintptr_t))
#define WORDS (sizeof(struct configuration) / sizeof(uintptr_t))

struct search {
	const struct host_library *library;
	sqlite3_mem_methods *found;
	int count;
};

static bool are_code(const struct static_object *object, const uintptr_t *words, size_t count)
{
	size_t i = 0;

	while (i < count && static_is_in(&object->code, words[i]))
		i++;
	return i == count;
}

/* The allocator's methods may belong to another module. A build without threads has no mutexes, one without
 * assertions lacks the last two of their methods. */
static bool is_configuration(const struct static_object *object, const uintptr_t *words)
{
	enum {
		VERSION = WORD(struct configuration, page_cache),
		CACHE = WORD(struct configuration, page_cache.xInit),
		MUTEXES = WORD(struct configuration, mutexes),
		CHECKS = WORD(struct configuration, mutexes.xMutexHeld),
		SHUTDOWN = WORD(sqlite3_mem_methods, xShutdown), /* may be missing */
	};
	static const uintptr_t none[CHECKS - MUTEXES];

	if (words[VERSION] != 1 || !are_code(object, words + CACHE, WORDS - CACHE) ||
	    (memcmp(words + MUTEXES, none, sizeof(none)) != 0 &&
	     !are_code(object, words + MUTEXES, CHECKS - MUTEXES)))
		return false;
	for (int i = 0; i < SHUTDOWN; i++)
		if (words[i] < 4096)
			return false;
	return true;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;
	struct static_object object;

	(void)size;
	static_object_read(&object, info);
	if (object.image.start != search->library->start)
		return 0;
	for (unsigned i = 0; i < object.data_count; i++)
		for (const uintptr_t *at = (const uintptr_t *)object.data[i].start;
		     (uintptr_t)at + sizeof(struct configuration) <= object.data[i].end; at++)
			if (is_configuration(&object, at)) {
				search->found = (sqlite3_mem_methods *)(uintptr_t)at;
				search->count++;
			}
	return 1;
}

/* NULL: not found, or several, of which it is not known whose they are. */
static sqlite3_mem_methods *find_methods(const struct host_library *library)
{
	struct search search = { .library = library };

	loader_each(search_object, &search);
	debug_log(DEBUG_HOOKS, "%s: the allocator's methods were found %d times", library->name,
	          search.count);
	return search.count == 1 ? search.found : NULL;
}

/* ----------------------------------------------------------------------------------------- */

void allocator_follow(const struct host_library *library)
{
	const size_t number = (size_t)(library - host_libraries);
	struct allocator *allocator = &allocators[number];
	sqlite3_mem_methods *found = NULL;

	if (!memory_sample_step())
		return;
	/* Acquire: with the store below. */
	if (!__atomic_load_n(&allocator->was_searched, __ATOMIC_ACQUIRE))
		found = find_methods(library);
	if (!lock_try(&lock))
		return;
	if (!allocator->was_searched) {
		if (found)
			allocator->real = *found;
		else
			counter_add(SAMPLER_ALLOCATORS_UNKNOWN, 1);
		allocator->methods = found;
		__atomic_store_n(&allocator->was_searched, true, __ATOMIC_RELEASE);
	}
	if (allocator->methods)
		replace(allocator->methods, &allocator->real, &ours[number], false);
	lock_release(&lock);
}

void allocators_restore(void)
{
	lock_acquire(&lock);
	for (int i = 0; i < HOST_LIBRARIES_MAX; i++)
		if (allocators[i].methods)
			replace(allocators[i].methods, &ours[i], &allocators[i].real, true);
	lock_release(&lock);
	memory_blocks_forget();
}
