/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the loader's memory that the map watches change only when an object is loaded.
 *
 * Usage: test_watch PLUGIN
 *
 * The loader also counts symbol look-ups. The test loads copies of a library until the number of added
 * objects equals the number of look-ups. Only then does the library read the loader's memory for the first
 * time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/unwind/unwind.h"
#include "modules/modules.h"

#define WORDS_MAX 2048
#define COPIES_MAX 2000

static const char *plugin;
static const uint64_t *words;
static size_t word_count;

static int take_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
	(void)size;
	*(uint64_t *)adds = info->dlpi_adds;
	return 1;
}

static uint64_t count_added(void)
{
	uint64_t adds = 0;

	dl_iterate_phdr(take_adds, &adds);
	return adds;
}

static bool find_loader(void)
{
	ElfW(Sym) *symbol = NULL;
	Dl_info info;

	words = dlsym(RTLD_DEFAULT, "_rtld_global");
	if (words == NULL || dladdr1(words, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL)
		return false;
	word_count = symbol->st_size / sizeof(*words);
	return word_count <= WORDS_MAX;
}

/* Returns the word that each look-up increments, or NULL. */
static const uint64_t *find_lookups(void)
{
	static uint64_t before[WORDS_MAX];
	const uint64_t *found = NULL;

	memcpy(before, words, word_count * sizeof(*words));
	for (int i = 0; i < 3; i++)
		dlsym(RTLD_DEFAULT, "no_such_symbol");
	for (size_t i = 0; i < word_count; i++)
		if (words[i] == before[i] + 3)
			found = &words[i];
	return found;
}

/* Each copy is an object of its own, because the loader identifies objects by their files. */
static void *load_copy(const char *path)
{
	static char bytes[1 << 16];
	FILE *from = fopen(plugin, "rb"), *to = fopen(path, "wb");

	assert_non_null(from);
	assert_non_null(to);
	const size_t size = fread(bytes, 1, sizeof(bytes), from);
	assert_true(size < sizeof(bytes) && fwrite(bytes, 1, size, to) == size);
	fclose(from);
	assert_int_equal(fclose(to), 0);
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	unlink(path);
	return library;
}

/* Runs in a child. At the first look, the number of added objects exceeds the number of look-ups by
 * `more`. */
static int watch_moves(const char *folder, int more)
{
	char path[64];

	for (int i = 0; i < more; i++) {
		snprintf(path, sizeof(path), "%s/more-%d.so", folder, i);
		load_copy(path);
	}
	if (modules_init() != 0 || code_map_current()->watches == 0)
		return 1;
	dlsym(RTLD_DEFAULT, "no_such_symbol");
	if (code_map_moved(code_map_current()))
		return 2;
	snprintf(path, sizeof(path), "%s/last.so", folder);
	load_copy(path);
	return code_map_moved(code_map_current()) ? 0 : 3;
}

static void test_lookups_do_not_move(void **state)
{
	char folder[] = "/tmp/test-watch-XXXXXX", path[64];

	(void)state;
	if (!find_loader())
		skip();
	const uint64_t *lookups = find_lookups();
	if (lookups == NULL)
		skip();
	assert_non_null(mkdtemp(folder));
	for (int i = 0; count_added() < *lookups && i < COPIES_MAX; i++) {
		snprintf(path, sizeof(path), "%s/%d.so", folder, i);
		assert_non_null(load_copy(path));
	}
	while (*lookups < count_added())
		dlsym(RTLD_DEFAULT, "no_such_symbol");
	print_message("%llu objects added, %llu look-ups\n", (unsigned long long)count_added(),
	              (unsigned long long)*lookups);
	assert_int_equal(*lookups, count_added());

	/* Finding the loader's memory makes a few look-ups, too. */
	for (int more = 0; more < 6; more++) {
		int status;

		fflush(NULL);
		const pid_t child = fork();
		if (child == 0)
			_exit(watch_moves(folder, more));
		assert_int_equal(waitpid(child, &status, 0), child);
		print_message("%d more: status %#x\n", more, (unsigned)status);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lookups_do_not_move),
	};

	if (argc != 2)
		return 2;
	plugin = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
