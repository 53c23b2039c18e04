/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions in the symbol tables of loaded objects, with either of the two hash tables that a linker
 * may make.
 */
#include <dlfcn.h>
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/loaded_symbol.h"

struct search {
	const char *file, *name;
	unsigned type;
	void *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;
	const ElfW(Sym) *symbol;

	(void)size;
	if (!strstr(info->dlpi_name, search->file))
		return 0;
	symbol = loaded_symbol_find(info, search->name, search->type);
	search->found = symbol ? (void *)(info->dlpi_addr + symbol->st_value) : NULL;
	return 1;
}

static void *find(const char *path, const char *name, unsigned type)
{
	struct search search = { strrchr(path, '/') + 1, name, type, NULL };

	assert_int_equal(dl_iterate_phdr(look, &search), 1);
	return search.found;
}

static void check(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		fail_msg("%s", dlerror());
	assert_non_null(dlsym(library, "loaded_function"));
	assert_ptr_equal(find(path, "loaded_function", STT_FUNC), dlsym(library, "loaded_function"));
	assert_ptr_equal(find(path, "loaded_variable", STT_OBJECT), dlsym(library, "loaded_variable"));
	assert_null(find(path, "loaded_function", STT_OBJECT));
	assert_null(find(path, "loaded_nothing", STT_FUNC));
	assert_null(find(path, "strlen", STT_FUNC)); /* belongs to another object */
	dlclose(library);
}

static void test_gnu_hash(void **state)
{
	(void)state;
	check(LOADED_GNU);
}

static void test_sysv_hash(void **state)
{
	(void)state;
	check(LOADED_SYSV);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gnu_hash),
		                            cmocka_unit_test(test_sysv_hash) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
