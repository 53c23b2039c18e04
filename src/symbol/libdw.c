/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libdw at first use instead of linking it.
 *
 * As a needed library it would bring five libraries into every host, also into one that
 * never looks up a name. It cannot be linked statically: Debian's archive is built for
 * executables (local-exec thread-locals). So dlopen() loads it, and it stays loaded. It
 * brings libelf, zlib and liblzma along, so one handle has the functions of all. Where it is
 * missing, addresses show as module+offset, and everything else works.
 *
 * The host may have a copy of libelf or libdw of its own, linked statically and exported.
 * The loaded libdw would call that other version. Only then it is loaded with
 * RTLD_DEEPBIND, which keeps its calls within its own libraries, but also hides a preloaded
 * malloc, and sanitizers abort the process on it.
 */
#include "symbol/libdw.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/debug.h"
#include "base/lock.h"

#define LIBDW_NAME "libdw.so.1"

static bool is_from(const void *function, const char *library)
{
	Dl_info info;
	if (!dladdr(function, &info) || !info.dli_fname)
		return false;
	const char *slash = strrchr(info.dli_fname, '/');
	return strncmp(slash ? slash + 1 : info.dli_fname, library, strlen(library)) == 0;
}

static bool host_has_its_own(void)
{
	const void *elf = dlsym(RTLD_DEFAULT, "elf_begin");
	const void *dwarf = dlsym(RTLD_DEFAULT, "dwarf_begin_elf");
	return (elf && !is_from(elf, "libelf")) || (dwarf && !is_from(dwarf, "libdw"));
}

static bool has_sanitizer(void)
{
	return dlsym(RTLD_DEFAULT, "__asan_init") || dlsym(RTLD_DEFAULT, "__tsan_init") ||
	       dlsym(RTLD_DEFAULT, "__msan_init");
}

static bool load(struct libdw *libdw)
{
	int flags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
	if (host_has_its_own()) {
		if (has_sanitizer()) {
			debug_log(DEBUG_SYMBOLS,
			          "%s is not loaded, because the host has its own copy and a sanitizer",
			          LIBDW_NAME);
			return false;
		}
		flags |= RTLD_DEEPBIND;
	}
	void *handle = dlopen(LIBDW_NAME, flags);
	if (!handle) {
		debug_log(DEBUG_SYMBOLS, "%s: %s", LIBDW_NAME, dlerror());
		return false;
	}
#define LIBDW_LOOK_UP(name)                                                                                  \
	libdw->name = (__typeof__(libdw->name))dlsym(handle, #name);                                         \
	if (!libdw->name)                                                                                    \
		return false;
	LIBDW_FUNCTIONS(LIBDW_LOOK_UP)
#undef LIBDW_LOOK_UP
#define LIBDW_LOOK_UP(name) libdw->name = (__typeof__(libdw->name))dlsym(handle, #name);
	LIBDW_COMPANIONS(LIBDW_LOOK_UP)
#undef LIBDW_LOOK_UP
	libdw->dwfl_frame_reg = (__typeof__(libdw->dwfl_frame_reg))dlsym(handle, "dwfl_frame_reg");
	return libdw->elf_version(EV_CURRENT) != EV_NONE;
}

static struct libdw functions;
static bool is_loaded;

static void load_once(void)
{
	is_loaded = load(&functions);
}

const struct libdw *libdw_load(void)
{
	static struct once once;
	once_do(&once, load_once);
	return is_loaded ? &functions : NULL;
}
