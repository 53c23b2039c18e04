/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variable may be of any module: of the program, or of a library that was loaded for itself,
 * which a look-up in the global scope does not see. So all modules with variables of threads are
 * searched, in their own tables: dlopen() and dlsym() are called in a program that has the variable only,
 * when no other thread is inside dlopen(); else at a later query. Its module stays loaded.
 */
#include "timers/context.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>

#include "base/loaded_symbol.h"
#include "base/loader.h"
#include "handler/thread.h"

#define VARIABLE "otel_thread_ctx_v1"

static void *module; /* atomic; that has it, NULL: none is known */

static int copy_name(struct dl_phdr_info *info, size_t size, void *name)
{
	(void)size;
	if (info->dlpi_tls_modid == 0 || !loaded_symbol_find(info, VARIABLE, STT_TLS))
		return 0;
	snprintf(name, PATH_MAX, "%s", info->dlpi_name ? info->dlpi_name : "");
	return 1;
}

static void *find_module(void)
{
	char name[PATH_MAX]; /* "" is the program */
	void *found;

	if (loader_each(copy_name, name) == 0 || !loader_acquire(0))
		return NULL;
	found = loader_find(name, 0);
	loader_release();
	return found;
}

void context_follow(struct thread *thread)
{
	void *from = __atomic_load_n(&module, __ATOMIC_ACQUIRE);

	if (thread->context_at != 0)
		return;
	if (!from && (from = find_module()))
		__atomic_store_n(&module, from, __ATOMIC_RELEASE);
	if (from && loader_acquire(0)) {
		thread->context_at = (uintptr_t)dlsym(from, VARIABLE);
		loader_release();
	}
}
