/*
 * Finds the loader's counters in its memory.
 *
 * dl_iterate_phdr tells how many objects were ever added and removed, but it takes
 * a lock, so a signal handler cannot ask. The numbers themselves stand in glibc's
 * `_rtld_global`, whose layout is nobody's business but glibc's. So no offset is
 * assumed: of all words that equal the number of additions at our first look,
 * those stay that still equal it at each later look. Which of them is the counter
 * does not matter.
 *
 * A word that only happens to hold the number may move without reason, which would cost
 * some traces their cached rules until the next look drops it. The one that does move
 * counts the symbols that were looked up, one more at nearly each first call of a
 * function. So the first two looks have such a look-up between them. The counter itself
 * never moves without reason and is never dropped.
 *
 * The number of objects mapped now is the one word that is told by its place,
 * behind the head of the list of them. It tells of a dlclose that no dlopen has
 * followed yet.
 *
 * Other C libraries have no such variable and are not watched: musl never unloads
 * anything.
 */
#include "modules/watch.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

static const uint64_t *first_word; /* NULL: there is nothing to watch */
static size_t word_count;
static const uint64_t *mapped_now;
static const uint64_t *added[CODE_MAP_WATCHES];
static uint32_t added_count;
static bool chosen;

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct code_watch watch[CODE_MAP_WATCHES];

	(void)context;
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
		watch_take(info->dlpi_adds, info->dlpi_subs, watch);
	return 1;
}

void watch_init(void)
{
	const struct r_debug *debug = dlsym(RTLD_DEFAULT, "_r_debug");
	const uint64_t *global = dlsym(RTLD_DEFAULT, "_rtld_global");
	ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (first_word != NULL || debug == NULL || global == NULL || (uintptr_t)global % 8 != 0 ||
	    dladdr1(global, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL ||
	    info.dli_saddr != (void *)global || symbol->st_size < 4 * sizeof *global)
		return;
	word_count = symbol->st_size / sizeof *global;
	if (global[0] == (uintptr_t)debug->r_map)
		mapped_now = &global[1];
	__atomic_store_n(&first_word, global, __ATOMIC_RELEASE);
	dl_iterate_phdr(look, NULL);
	(void)dlsym(RTLD_DEFAULT, "_r_debug");
	dl_iterate_phdr(look, NULL);
}

static uint64_t read_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* The lock that guards what is static here is the loader's, of which the thread
 * sanitizer does not know. */
#define LOCKED_BY_LOADER __attribute__((no_sanitize("thread")))

LOCKED_BY_LOADER static void choose(uint64_t adds)
{
	chosen = true;
	added_count = 0;
	for (size_t i = 0; i < word_count; i++) {
		if (&first_word[i] == mapped_now || read_word(&first_word[i]) != adds)
			continue;
		/* One place is kept for the other number. Too many: at another time,
		 * when the number is less common. */
		if (added_count == CODE_MAP_WATCHES - 1) {
			chosen = false;
			added_count = 0;
			return;
		}
		added[added_count++] = &first_word[i];
	}
}

LOCKED_BY_LOADER uint32_t watch_take(uint64_t adds, uint64_t subs, struct code_watch watch[CODE_MAP_WATCHES])
{
	uint32_t count = 0, kept = 0;

	if (__atomic_load_n(&first_word, __ATOMIC_ACQUIRE) == NULL)
		return 0;
	if (!chosen)
		choose(adds);
	for (uint32_t i = 0; i < added_count; i++)
		if (read_word(added[i]) == adds)
			added[kept++] = added[i];
	added_count = kept;
	for (uint32_t i = 0; i < added_count; i++)
		watch[count++] = (struct code_watch){ added[i], adds };
	/* Other namespaces have their share of what was not removed. */
	if (mapped_now != NULL && read_word(mapped_now) > adds - subs)
		mapped_now = NULL;
	if (mapped_now != NULL)
		watch[count++] = (struct code_watch){ mapped_now, read_word(mapped_now) };
	return count;
}
