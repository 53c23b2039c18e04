/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variable may be of any module: of the program, or of a library that was loaded for itself,
 * which a look-up in the global scope does not see. So each module is searched, once after modules
 * were added. The one that has it stays loaded.
 */
#include "sampler/context.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "handler/thread.h"

#define VARIABLE "otel_thread_ctx_v1"

static void *module;                /* atomic; that has it, NULL: none is known */
static unsigned long long searched; /* atomic; modules that were ever added when all were searched last */

static int note_added(struct dl_phdr_info *info, size_t size, void *added)
{
	(void)size;
	*(unsigned long long *)added = info->dlpi_adds;
	return 1;
}

struct nth {
	size_t left;
	char name[PATH_MAX];
};

static int take_name(struct dl_phdr_info *info, size_t size, void *context)
{
	struct nth *nth = context;

	(void)size;
	if (nth->left-- > 0)
		return 0;
	snprintf(nth->name, sizeof nth->name, "%s", info->dlpi_name != NULL ? info->dlpi_name : "");
	return 1;
}

/* The loader's list is looked at under its lock only: another thread may unload a module. The program comes
 * first, as "". */
static void *find_module(void)
{
	struct nth nth = { .left = 0 };

	for (size_t i = 0; dl_iterate_phdr(take_name, &nth) != 0; nth.left = ++i) {
		void *handle = dlopen(*nth.name != '\0' ? nth.name : NULL, RTLD_LAZY | RTLD_NOLOAD);

		if (handle != NULL && dlsym(handle, VARIABLE) != NULL)
			return handle;
		if (handle != NULL)
			dlclose(handle);
	}
	return NULL;
}

void context_follow(struct thread *thread)
{
	void *from = __atomic_load_n(&module, __ATOMIC_ACQUIRE);
	unsigned long long added = 0;

	if (thread->context_at != 0)
		return;
	if (from == NULL) {
		dl_iterate_phdr(note_added, &added);
		if (__atomic_exchange_n(&searched, added, __ATOMIC_RELAXED) == added)
			return;
		from = find_module();
		__atomic_store_n(&module, from, __ATOMIC_RELEASE);
	}
	if (from != NULL)
		thread->context_at = (uintptr_t)dlsym(from, VARIABLE);
}
