/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the loader's counters in its memory.
 *
 * dl_iterate_phdr() returns the number of objects that were ever added and removed, but it takes a
 * lock, so a signal handler cannot call it. The numbers are in glibc's `_rtld_global`, whose layout
 * is private to glibc. So no offset is assumed: the chosen words equal the number of additions at the
 * first scan, and a later scan drops those that no longer do. It does not matter which of them is the
 * counter.
 *
 * A word that has the number by chance may change when no object was mapped; some stacks then lose
 * their cached rules, until the next scan drops the word. In practice that is glibc's count of symbol
 * look-ups, which grows with nearly each first call of a function. So watch_init() scans twice with a
 * symbol look-up in between. The counter itself changes only when an object is mapped, and is never
 * dropped.
 *
 * The number of currently mapped objects is found by its position, after the head of their list. It
 * shows a dlclose() that no dlopen() has followed yet.
 *
 * Other C libraries have no such variable and are not watched: musl never unloads an object.
 */
#include "modules/watch.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/loader.h"

static const uint64_t *first_word; /* of _rtld_global; NULL: there is none */
static size_t word_count;
static const uint64_t *mapped_now;
static const uint64_t *added[CODE_MAP_WATCHES];
static uint32_t added_count;
static bool chosen;

/* The loader's lock guards the variables of this file, but ThreadSanitizer does not know
 * that lock. */
#define LOCKED_BY_LOADER __attribute__((no_sanitize("thread")))

static int inspect(struct dl_phdr_info *info, size_t size, void *context)
{
	struct code_watch watch[CODE_MAP_WATCHES];

	(void)context;
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		watch_adopt(info->dlpi_adds, info->dlpi_subs, watch);
	return 1;
}

struct loader_words {
	const uint64_t *first;
	size_t count;
	const uint64_t *mapped_now;
};

/* Of threads that find the words at the same time the first publishes them. */
LOCKED_BY_LOADER static int publish_words(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct loader_words *words = context;

	(void)info, (void)size;
	if (first_word)
		return 1;
	word_count = words->count;
	mapped_now = words->mapped_now;
	__atomic_store_n(&first_word, words->first, __ATOMIC_RELEASE);
	return 1;
}

#if defined(__GLIBC__)
/* False: there are none, or another thread is inside dlopen(). */
static bool find_words(struct loader_words *words)
{
	const struct r_debug *debug;
	ElfW(Sym) *symbol = NULL;
	Dl_info info;
	bool found;

	if (!loader_acquire(LOADER_BRIEFLY))
		return false;
	debug = dlsym(RTLD_DEFAULT, "_r_debug");
	words->first = dlsym(RTLD_DEFAULT, "_rtld_global");
	found = debug && words->first && (uintptr_t)words->first % 8 == 0 &&
	        dladdr1(words->first, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol &&
	        info.dli_saddr == (const void *)words->first && symbol->st_size >= 4 * sizeof(*words->first);
	if (found) {
		words->count = symbol->st_size / sizeof(*words->first);
		if (words->first[0] == (uintptr_t)debug->r_map)
			words->mapped_now = &words->first[1];
	}
	loader_release();
	return found;
}

#else
static bool find_words(struct loader_words *words)
{
	(void)words;
	return false;
}
#endif

void watch_init(void)
{
	struct loader_words words = { 0 };

	if (__atomic_load_n(&first_word, __ATOMIC_ACQUIRE) || !find_words(&words))
		return;
	loader_each(publish_words, &words);
	loader_each(inspect, NULL);
	if (loader_acquire(LOADER_BRIEFLY)) {
		(void)dlsym(RTLD_DEFAULT, "_r_debug");
		loader_release();
	}
	loader_each(inspect, NULL);
}

static uint64_t read_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

LOCKED_BY_LOADER static void choose(uint64_t adds)
{
	chosen = true;
	added_count = 0;
	for (size_t i = 0; i < word_count; i++) {
		if (&first_word[i] == mapped_now || read_word(&first_word[i]) != adds)
			continue;
		/* One place is kept for the number of mapped objects. With too many candidates a
		 * later scan chooses, when fewer words equal the number. */
		if (added_count == CODE_MAP_WATCHES - 1) {
			chosen = false;
			added_count = 0;
			return;
		}
		added[added_count++] = &first_word[i];
	}
}

LOCKED_BY_LOADER uint32_t watch_adopt(uint64_t adds, uint64_t subs, struct code_watch watch[CODE_MAP_WATCHES])
{
	uint32_t count = 0, kept = 0;

	if (!__atomic_load_n(&first_word, __ATOMIC_ACQUIRE))
		return 0;
	if (!chosen)
		choose(adds);
	for (uint32_t i = 0; i < added_count; i++)
		if (read_word(added[i]) == adds)
			added[kept++] = added[i];
	added_count = kept;
	for (uint32_t i = 0; i < added_count; i++)
		watch[count++] = (struct code_watch){ added[i], adds };
	/* adds - subs also counts the objects of other namespaces. */
	if (mapped_now && read_word(mapped_now) > adds - subs)
		mapped_now = NULL;
	if (mapped_now)
		watch[count++] = (struct code_watch){ mapped_now, read_word(mapped_now) };
	return count;
}