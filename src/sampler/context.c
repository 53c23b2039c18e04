/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variable may be of any module: of the program, or of a library that was loaded for itself,
 * which a look-up in the global scope does not see. So each module is asked, once after modules
 * were added. The one that has it stays loaded.
 */
#include "sampler/context.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "handler/thread.h"

#define VARIABLE "otel_thread_ctx_v1"

static void *module;             /* atomic; that has it, NULL: none is known */
static unsigned long long asked; /* atomic; modules that were ever added when all were asked last */

static int note_added(struct dl_phdr_info *info, size_t size, void *added)
{
	(void)size;
	*(unsigned long long *)added = info->dlpi_adds;
	return 1;
}

static void *find_module(void)
{
	struct link_map *map = NULL;
	void *self = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);

	if (self == NULL)
		return NULL;
	if (dlsym(self, VARIABLE) != NULL)
		return self;
	if (dlinfo(self, RTLD_DI_LINKMAP, &map) != 0)
		map = NULL;
	dlclose(self);
	for (map = map != NULL ? map->l_next : NULL; map != NULL; map = map->l_next) {
		void *handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);

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
		if (__atomic_exchange_n(&asked, added, __ATOMIC_RELAXED) == added)
			return;
		from = find_module();
		__atomic_store_n(&module, from, __ATOMIC_RELEASE);
	}
	if (from != NULL)
		thread->context_at = (uintptr_t)dlsym(from, VARIABLE);
}
