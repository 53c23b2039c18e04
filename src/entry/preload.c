/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preload of `queryprof record`. It loads the recorder as soon as the process has SQLite, and
 * notifies it of new modules. Most processes that a command starts (shells, compilers) never have
 * SQLite; they carry only these functions. A SQLite inside the program or a module loads the library
 * when it opens its first database (sqlite/static/opening.h).
 *
 * SQLite may come long after the start, with a module that a script loads. Wrapping dlopen() would
 * not do, because it uses its caller's search path and would find other files. Instead the preload
 * defines `__gmon_start__`, which the start-up code of every object calls if it exists: it runs
 * within dlopen(), when all new objects are in place and before any of their code. A program that
 * gprof profiles has its own, which takes precedence, and libraries that it loads later are not seen.
 *
 * The preload acts only if the environment tells it to, and never in a set-user-id program: there the
 * loader ignores preloads, and secure_getenv() the environment.
 *
 * Programs that use musl inherit LD_PRELOAD, too, and musl ends a program whose preload needs a function that
 * it does not have. So the preload needs only functions that both C libraries have
 * (entry/preload_imports.txt). Under musl it does no more than load libqueryprof-musl.so, which is this file
 * and the recorder, compiled for musl. There dlopen() may be wrapped, because it does not depend on its
 * caller, and no start-up code calls `__gmon_start__`.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/filters.h"
#include "base/loader.h"
#include "base/memory_headroom.h"
#include "recorder/mark.h"
#if defined(__GLIBC__)
#include "recorder_table.h"
#else
#include "base/bounded_wait.h"
#include "base/cancel.h"
#include "base/loaded_symbol.h"
#include "base/sys.h"
#include "hook/import.h"
#include "queryprof.h"
#endif
#include "sqlite/library/library.h"
#include "sqlite/calls/namespaces.h"
#include "sqlite/static/opening.h"

static bool active;
static int (*record)(void); /* qp_record() */
static unsigned long long seen_adds;

#if defined(__GLIBC__)

__attribute__((visibility("default"))) void __gmon_start__(void);
__attribute__((visibility("default"))) void *dlmopen(Lmid_t space, const char *file, int mode);
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

/* All libraries of the process share one, the first, which is this one. */
struct qp_span_context;
extern __thread struct qp_span_context *qp_span_here
	__attribute__((visibility("default"), tls_model("initial-exec")));
__thread struct qp_span_context *qp_span_here;

#endif

static int read_adds(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	*(unsigned long long *)context = info->dlpi_adds;
	return 1;
}

#if defined(__GLIBC__)

/* The recorder that a host's own libqueryprof.so contains, if it is of this build; NULL: none. One that comes
 * later uses the recorder of the process (entry/linked_recorder.c). */
static void *find_hosts_library(void)
{
	void *handle = dlopen("libqueryprof.so.0", RTLD_NOW | RTLD_NOLOAD);

	if (handle && !dlsym(handle, RECORDER_TABLE_NAME)) {
		dlclose(handle);
		handle = NULL;
	}
	return handle;
}

/* One of the preload's folder. */
static void *open_beside(const char *name)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;

	if (!dladdr((void *)__gmon_start__, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (!slash || snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname,
	                       name) >= (int)sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

#endif

static void refused(const char *path, const char *why)
{
	char line[PATH_MAX + 400];

	snprintf(line, sizeof(line), "%s: %s", path, why);
	mark_write(MARK_REFUSED, line);
}

static const char *name_program(char path[PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[size > 0 ? size : 0] = '\0';
	return path;
}

/* Once: what the process may not have now it will hardly have later. */
static bool is_welcome(void)
{
	static enum { NOT_KNOWN, WELCOME, NOT_WELCOME } is;
	char program[PATH_MAX], why[MEMORY_SENTENCE_SIZE];

	if (is == NOT_KNOWN) {
		is = memory_has_headroom(MEMORY_OF_LIBRARY, why) ? WELCOME : NOT_WELCOME;
		if (is == NOT_WELCOME)
			refused(name_program(program), why);
	}
	return is == WELCOME;
}

#if defined(__GLIBC__)
static void *find_in_library(const char *function)
{
	void *handle = is_welcome() ? find_hosts_library() : NULL;

	if (!handle && is_welcome())
		handle = open_beside("libqueryprof-recorder.so");
	return handle ? dlsym(handle, function) : NULL;
}
#define FIND_IN_LIBRARY(function) find_in_library(#function)
#else
#define FIND_IN_LIBRARY(function) (is_welcome() ? (void *)(function) : NULL)
#endif

static void first_open(const void *routines)
{
	int (*record_static)(const void *);

	*(void **)&record_static = FIND_IN_LIBRARY(qp_record_static);
	if (record_static)
		record_static(routines);
}

static void found_elsewhere(const char *path)
{
	refused(path, "it was loaded into a separate namespace (dlmopen()), where queryprof does not follow "
	              "SQLite");
}

/* "sh/usr/bin/dash": a name contains no slash. */
static void mark_program(void)
{
	char line[16 + PATH_MAX] = "";
	size_t size;

	prctl(PR_GET_NAME, line);
	size = strlen(line);
	if (readlink("/proc/self/exe", line + size, PATH_MAX - 1) > 0)
		mark_write(MARK_PROGRAM, line);
}

/* Which of the objects has a SQLite of its own inside, the command looks up if it has to. The
 * program comes first, without a name. */
static int mark_object(struct dl_phdr_info *info, size_t size, void *context)
{
	static size_t left;
	size_t *index = context;

	(void)size;
	if ((*index)++ < left)
		return 0;
	left++;
	if (!*info->dlpi_name)
		mark_program();
	else if (*info->dlpi_name == '/')
		mark_write(MARK_OBJECT, info->dlpi_name);
	return 0;
}

/* One thread at a time: the loader's lock is held, or there is only one thread yet. */
static void find_sqlite(void)
{
	static struct library_search search;
	struct sqlite_library library;
	unsigned long long adds = 0;
	char program[PATH_MAX];
	size_t index = 0;

	loader_each(read_adds, &adds);
	if (adds == seen_adds)
		return;
	seen_adds = adds;
	if (!record && filters_are_unseen(0)) {
		active = false;
		mark_plainly();
		refused(name_program(program), FILTERS_UNSEEN);
		return;
	}
	opening_check(first_open, refused); /* before library_next(), which leaves the modules watched */
	if (!record && library_next(&search, &library)) {
		*(void **)&record = FIND_IN_LIBRARY(qp_record);
		active = record != NULL; /* it will not be there later either */
	}
	if (record)
		record();
	else
		loader_each(mark_object, &index);
	namespaces_check(found_elsewhere);
}

#if defined(__GLIBC__)

/* The caller's return address stays the newest one where the last thing is a call. */
#if defined(__clang__)
#define OWN_CALLER
#else
#define OWN_CALLER __attribute__((optimize("optimize-sibling-calls")))
#endif

/* Objects in a separate namespace call that namespace's C library, and their start-up code does
 * not call ours. dlopen() searches for a name without a path from the caller's object, so that
 * call belongs to the caller. Such an object is seen at the next look, or at the end. */
OWN_CALLER void *dlmopen(Lmid_t space, const char *file, int mode)
{
	static void *(*real)(Lmid_t, const char *, int); /* atomic */
	void *(*open)(Lmid_t, const char *, int) = __atomic_load_n(&real, __ATOMIC_RELAXED), *handle;

	if (!open) {
		*(void **)&open = dlsym(RTLD_NEXT, "dlmopen");
		__atomic_store_n(&real, open, __ATOMIC_RELAXED);
	}
	if (!open) /* musl has none */
		return NULL;
	if (!active || !file || !strchr(file, '/') || strchr(file, '$'))
		return open(space, file, mode);
	handle = open(space, file, mode);
	if (handle)
		namespaces_check(found_elsewhere);
	return handle;
}

__attribute__((destructor)) static void end(void)
{
	if (active)
		namespaces_check(found_elsewhere);
}

/*
 * The run-time libraries of sanitizers call these functions in the first object that defines them,
 * which is the program if it does.
 *
 * AddressSanitizer's library ends a program if another library precedes it, as this one does, because
 * that may hide its functions. This one hides none: libc, whose functions it replaces, comes later,
 * and dlmopen() continues to the next definition.
 */
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* ThreadSanitizer replaces libc's functions for queryprof's library, too, but does not see how the
 * library synchronizes. So it would report a race for any of its memory that two threads use. */
const char *__tsan_default_suppressions(void)
{
	return "race:libqueryprof\nmutex:libqueryprof\nthread:libqueryprof\nsignal:libqueryprof\n";
}

static void look(void)
{
	find_sqlite();
}

void __gmon_start__(void)
{
	if (active)
		look();
}

static bool is_musl(void)
{
	char program[PATH_MAX], line[400];
	const char *error;

	/* Not gnu_get_libc_version(), which a library for musl (gcompat) has, too. */
	if (dlsym(RTLD_DEFAULT, "_rtld_global"))
		return false;
	(void)dlerror();
	if (active && is_welcome() && !open_beside("libqueryprof-musl.so")) {
		error = dlerror();
		if (error && !strstr(error, "No such file"))
			snprintf(line, sizeof(line), "its C library is musl: %s", error);
		else
			snprintf(line, sizeof(line), "%s",
			         "its C library is musl, for which this build of queryprof has no library "
			         "(libqueryprof-musl.so): build it where musl-gcc is installed");
		refused(name_program(program), line);
	}
	return true;
}

/* By libc_nonshared.a's pthread_atfork(), which musl has instead. */
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
                             void *object) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void follow_forks(void)
{
	if (__register_atfork)
		(void)__register_atfork(loader_before_fork, loader_after_fork_in_parent,
		                        loader_after_fork_in_child, __dso_handle);
}

#else

BOUNDED_WAIT_DEFINE(for_look, "a dlopen(): another thread looks for SQLite", NS_PER_S,
                    "nothing, so it looks every 0.1 ms; a look takes milliseconds");
#define NAP_NS 100000

static uint32_t looking; /* atomic: the thread that looks; 0: none */

static void *open_and_look(const char *file, int mode);

static bool is_own(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    (uintptr_t)&looking - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
		            info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

/* Slots that lead to another library's dlopen() stay, and queryprof's own. */
static int patch_object(struct dl_phdr_info *info, size_t size, void *context)
{
	static size_t done;
	size_t *index = context;
	void **slot;

	(void)size;
	if ((*index)++ < done)
		return 0;
	done++;
	for (size_t i = 0; !is_own(info) && (slot = loaded_function_slot(info, "dlopen", i)); i++)
		import_set(slot, (const void *)dlopen, (void *)open_and_look);
	return 0;
}

static void look(void)
{
	size_t index = 0;

	loader_each(patch_object, &index);
	find_sqlite();
	(void)dlerror(); /* of our look-ups */
}

static void *open_and_look(const char *file, int mode)
{
	void *handle = dlopen(file, mode);
	struct bounded_wait wait;
	int cancel;

	if (!active || !handle || !file)
		return handle;
	cancel = cancel_hold();
	wait = bounded_wait_begin(&for_look);
	for (uint32_t none = 0;; none = 0) {
		if (__atomic_compare_exchange_n(&looking, &none, (uint32_t)sys_gettid(), false,
		                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			look();
			__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
			break;
		}
		/* Itself: a signal handler of the host's. */
		if (none == (uint32_t)sys_gettid() || !bounded_wait_nap(&wait, NAP_NS))
			break;
	}
	cancel_release(cancel);
	return handle;
}

/* A thread that was looking exists only in the parent. */
static void forget_look(void)
{
	if (looking != (uint32_t)sys_gettid())
		looking = 0;
}

static bool is_musl(void)
{
	return false;
}

static void follow_forks(void)
{
	(void)pthread_atfork(NULL, NULL, forget_look);
}

#endif

__attribute__((constructor)) static void start(void)
{
	active = secure_getenv("QUERYPROF_RECORD") != NULL;
	if (is_musl())
		active = false;
	if (!active)
		return;
	/* Without memory for it a fork does not wait. */
	follow_forks();
	look();
}
