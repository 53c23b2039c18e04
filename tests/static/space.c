/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space MODULE: runs queries in threads. In each thread, a module of another namespace (dlmopen()) has values
 * of its own. Prints how many of them were kept, and whether the namespaces share errno and
 * the list of modules.
 */
#include "space_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>

#define THREADS 8

static void (*set)(uintptr_t value);
static int (*kept)(uintptr_t value);

static void query(void)
{
	sqlite3 *db;

	sqlite3_open(":memory:", &db);
	sqlite3_exec(db,
	             "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000)"
	             " SELECT sum(x) FROM c",
	             NULL, NULL, NULL);
	sqlite3_close(db);
}

/* Every other thread runs a query first. The values are odd, so they are not addresses. */
static void *work(void *number)
{
	uintptr_t value = (uintptr_t)number << 8 | 1;

	if ((uintptr_t)number % 2)
		query();
	set(value);
	query();
	printf("kept %d of %d\n", kept(value), SPACE_KEYS);
	return NULL;
}

static int count_object(struct dl_phdr_info *info, size_t size, void *set_function)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if ((uintptr_t)set_function - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
		    info->dlpi_phdr[i].p_memsz)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	void *module = argc == 2 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : NULL;
	int *(*its_errno)(void);
	bool (*make_keys)(void);
	pthread_t thread;

	if (!module) {
		puts(argc == 2 ? dlerror() : "usage: space MODULE");
		return 2;
	}
	*(void **)&make_keys = dlsym(module, "space_make_keys");
	*(void **)&set = dlsym(module, "space_set");
	*(void **)&kept = dlsym(module, "space_kept");
	*(void **)&its_errno = dlsym(module, "space_errno");
	if (!make_keys())
		return 1;
	printf("errno is %s\n", its_errno() == &errno ? "shared" : "not shared");
	printf("the module is %s\n", dl_iterate_phdr(count_object, *(void **)&set) ? "listed" : "not listed");
	for (uintptr_t i = 0; i < THREADS; i++) {
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 1;
		pthread_join(thread, NULL);
	}
	work((void *)THREADS);
	return 0;
}
