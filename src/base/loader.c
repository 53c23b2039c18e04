/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads inside a look-up count themselves, and a fork() waits until there are none. A mutex would
 * have an order with the loader's lock: a host's callback of dl_iterate_phdr() may run a query, and a
 * thread inside a look-up waits for that callback.
 *
 * The loader's own two locks are recursive mutexes of glibc, next to each other in `_rtld_global`,
 * whose layout is private to glibc. No offset is assumed: the lock of the list is the one that this
 * thread holds only inside dl_iterate_phdr(), and the one before it is that of dlopen(). If they are
 * not found, a look-up waits like any caller's.
 *
 * Also compiled into the preload, so it does not need the rest of base.
 */
#include "base/loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/bounded_wait.h"
#include "base/cancel.h"
#include "base/lock.h"
#include "base/newer_glibc.h"
#include "base/sys.h"

BOUNDED_WAIT_DEFINE(for_forks, "a look at the loader's objects: a fork() of another thread", NS_PER_S,
                    "nothing, so it looks every 0.1 ms; the fork waits for looks that have begun");
BOUNDED_WAIT_DEFINE(for_objects, "fork(): looks at the loader's objects", NS_PER_S,
                    "nothing, so it looks every 0.1 ms; a look takes microseconds");
/* Callers have shorter limits. */
BOUNDED_WAIT_DEFINE(for_dlopen, "a look-up of a symbol: another thread inside dlopen()", BOUND_MS(10000),
                    "nothing, so it looks every 0.1 ms");
#define NAP_NS 100000

#pragma weak dladdr1 /* the preload is also loaded by musl's loader, which does not have it */

static uint32_t looking;         /* atomic: threads in dl_iterate_phdr() */
static uint32_t forking;         /* atomic: forks that wait for these, or are under way */
static __thread uint32_t nested; /* look-ups of this thread: a host's signal handler may interrupt them */

/* --- the loader's locks ------------------------------------------------------------------------------ */

#if defined(__GLIBC__)

static struct {
	pthread_mutex_t *of_dlopen, *of_list; /* NULL: not known */
	const struct r_debug *debug;
	bool list_is_lost; /* in this child: the thread that held the lock of the list belongs to the
	                    * parent */
} loader;

struct lock_search {
	pthread_mutex_t *first, *end, *found;
	unsigned count;
	int thread_id;
};

static pthread_mutex_t *behind(pthread_mutex_t *mutex, int words)
{
	return (pthread_mutex_t *)(void *)((uint64_t *)(void *)mutex + words);
}

static bool is_held(const pthread_mutex_t *mutex, int thread_id)
{
	return mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP && mutex->__data.__owner == thread_id &&
	       mutex->__data.__lock && mutex->__data.__count;
}

/* The locks that the calling thread has. */
static int see_locks(struct dl_phdr_info *info, size_t size, void *context)
{
	struct lock_search *search = context;

	(void)info, (void)size;
	for (pthread_mutex_t *at = search->first; at + 1 <= search->end; at = behind(at, 1))
		if (is_held(at, search->thread_id)) {
			search->found = at;
			search->count++;
		}
	return 1;
}

/* While the library is loaded: this thread holds the lock of dlopen(), or no thread does. */
__attribute__((constructor)) static void find_locks(void)
{
	void *global = dlsym(RTLD_DEFAULT, "_rtld_global");
	struct lock_search outside = { .thread_id = (int)sys_gettid() }, inside;
	pthread_mutex_t *of_dlopen;
	ElfW(Sym) *symbol = NULL;
	Dl_info location;

	loader.debug = dlsym(RTLD_DEFAULT, "_r_debug");
	/* The preload under musl, which keeps the error until someone asks for it: that would be the host. */
	if (!global)
		(void)dlerror();
	if (!global || !dladdr1 || (uintptr_t)global % sizeof(uint64_t) ||
	    !dladdr1(global, &location, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	    location.dli_saddr != global)
		return;
	outside.first = global;
	outside.end = (pthread_mutex_t *)(void *)((char *)global + symbol->st_size);
	inside = outside;
	see_locks(NULL, 0, &outside);
	dl_iterate_phdr(see_locks, &inside);
	/* The one of the list comes last. */
	if (outside.count > 1 || inside.count != outside.count + 1)
		return;
	of_dlopen = inside.found - 1;
	if (outside.count
	            ? of_dlopen != outside.found
	            : of_dlopen < outside.first || of_dlopen->__data.__kind != PTHREAD_MUTEX_RECURSIVE_NP)
		return;
	loader.of_list = inside.found;
	loader.of_dlopen = of_dlopen;
}

/* As pthread_mutex_trylock(), which a host may have replaced. */
static bool try_acquire(pthread_mutex_t *mutex)
{
	const int thread_id = (int)sys_gettid();
	int free_lock = 0;

	if (__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) != thread_id) {
		if (!__atomic_compare_exchange_n(&mutex->__data.__lock, &free_lock, 1, false,
		                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return false;
		__atomic_store_n(&mutex->__data.__owner, thread_id, __ATOMIC_RELAXED);
		mutex->__data.__nusers++;
	}
	mutex->__data.__count++;
	return true;
}

bool loader_acquire(uint64_t ns)
{
	struct bounded_wait wait = bounded_wait_begin_within(&for_dlopen, ns);

	while (loader.of_dlopen && !try_acquire(loader.of_dlopen))
		if (!bounded_wait_nap(&wait, NAP_NS))
			return false;
	return true;
}

/* In a child of a fork() in between the lock is new. */
void loader_release(void)
{
	pthread_mutex_t *mutex = loader.of_dlopen;

	if (!mutex || __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) != (int)sys_gettid() ||
	    --mutex->__data.__count)
		return;
	__atomic_store_n(&mutex->__data.__owner, 0, __ATOMIC_RELAXED);
	mutex->__data.__nusers--;
	/* 2: another thread may sleep. */
	if (__atomic_exchange_n(&mutex->__data.__lock, 0, __ATOMIC_RELEASE) > 1)
		futex_wake((uint32_t *)&mutex->__data.__lock, 1);
}

static bool is_list_locked(void)
{
	return loader.of_list && loader.debug && loader.of_list->__data.__lock;
}

void *loader_find(const char *name, int flags)
{
	return dlopen(*name != '\0' ? name : NULL, RTLD_LAZY | RTLD_NOLOAD | flags);
}

#else

/* musl holds its lock while it reads files, not while a constructor runs, and renews it in a child. Its
 * dlopen() waits for constructors, which loader_find() therefore does not call. */
bool loader_acquire(uint64_t ns)
{
	(void)ns;
	return true;
}

/* musl keeps the error of a look-up until someone asks for it, which would be the host. */
void loader_release(void)
{
	(void)dlerror();
}

/* With RTLD_NOLOAD, too, musl opens the file and waits until the constructors of the object have run, and one
 * of them may wait for the calling thread. Its handle of an object is the link_map. Objects stay, and those
 * of a dlopen() that fails are at the end of the list, after all that loader_each() has shown. */
void *loader_find(const char *name, int flags)
{
	struct link_map *object = NULL;

	(void)flags;
	if (dlinfo(dlopen(NULL, RTLD_LAZY), RTLD_DI_LINKMAP, &object) || *name == '\0')
		return object;
	while (object && strcmp(object->l_name, name) != 0)
		object = object->l_next;
	return object;
}

#endif

/* --- the list ---------------------------------------------------------------------------------------- */

/* Sequentially consistent, like loader_before_fork(): if a look-up and a fork begin at the same
 * moment, one sees the other. After a second it continues, because the fork waits no longer
 * either. */
static void begin_visit(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_forks);

	while (!nested) {
		__atomic_fetch_add(&looking, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&forking, __ATOMIC_SEQ_CST) || !bounded_wait_remaining(&wait))
			break;
		__atomic_fetch_sub(&looking, 1, __ATOMIC_SEQ_CST);
		bounded_wait_nap(&wait, NAP_NS);
	}
	nested++;
}

static void end_visit(void)
{
	if (!--nested)
		__atomic_fetch_sub(&looking, 1, __ATOMIC_SEQ_CST);
}

#if defined(__GLIBC__)
/* For an object whose headers are at its start, as all linkers put them. */
static bool read_headers(const struct link_map *object, struct dl_phdr_info *info)
{
	const ElfW(Ehdr) *header;
	struct dl_find_object location;

	if (object == loader.debug->r_map) {
		info->dlpi_phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR);
		info->dlpi_phnum = (ElfW(Half))getauxval(AT_PHNUM);
		return info->dlpi_phdr != NULL;
	}
	if (!_dl_find_object || _dl_find_object(object->l_ld, &location))
		return false;
	header = location.dlfo_map_start;
	info->dlpi_phdr = (const ElfW(Phdr) *)((const char *)location.dlfo_map_start + header->e_phoff);
	info->dlpi_phnum = header->e_phnum;
	return !memcmp(header->e_ident, ELFMAG, SELFMAG);
}

/* The list cannot change any more, as whoever would change it needs its lock. Without the loader's counters.
 */
static int walk_list(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
	int result = 0;

	for (const struct link_map *object = loader.debug->r_map; object && !result;
	     object = object->l_next) {
		struct dl_phdr_info info = { .dlpi_addr = object->l_addr, .dlpi_name = object->l_name };

		if (!read_headers(object, &info))
			continue;
		for (int i = 0; i < info.dlpi_phnum; i++)
			info.dlpi_tls_modid |= info.dlpi_phdr[i].p_type == PT_TLS;
		result = see(&info, offsetof(struct dl_phdr_info, dlpi_adds), context);
	}
	return result;
}

static int each(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
	return loader.list_is_lost ? walk_list(see, context) : dl_iterate_phdr(see, context);
}

#else

struct visit {
	int (*see)(struct dl_phdr_info *info, size_t size, void *context);
	void *context;
	size_t objects;
	bool is_later;
};

static int count(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)info, (void)size;
	++*(size_t *)context;
	return 0;
}

/* Names and counters as glibc has them: musl's name for the program is the one by which it was executed, it
 * has none for the vdso, and it counts calls of dlopen(). It removes no object. */
static int see_named(struct dl_phdr_info *info, size_t size, void *context)
{
	struct visit *visit = context;
	struct dl_phdr_info named = *info;

	if (!visit->is_later)
		named.dlpi_name = "";
	else if (!*named.dlpi_name)
		named.dlpi_name = "linux-vdso.so.1";
	visit->is_later = true;
	named.dlpi_adds = visit->objects;
	return visit->see(&named, size, visit->context);
}

static int each(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
	struct visit visit = { .see = see, .context = context };

	dl_iterate_phdr(count, &visit.objects);
	return dl_iterate_phdr(see_named, &visit);
}

#endif

int loader_each(int (*see)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
	int cancel = cancel_hold(), result;

	begin_visit();
	result = each(see, context);
	end_visit();
	cancel_release(cancel);
	return result;
}

void loader_before_fork(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_objects);
	const uint32_t own = nested != 0;

	__atomic_fetch_add(&forking, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&looking, __ATOMIC_SEQ_CST) > own && bounded_wait_nap(&wait, NAP_NS))
		;
}

void loader_after_fork_in_parent(void)
{
	__atomic_fetch_sub(&forking, 1, __ATOMIC_SEQ_CST);
}

void loader_after_fork_in_child(void)
{
	__atomic_store_n(&looking, nested != 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&forking, 0, __ATOMIC_SEQ_CST);
#if defined(__GLIBC__)
	/* A thread of the host's was in there. */
	loader.list_is_lost |= is_list_locked();
#endif
}

static const struct lock_group looks = {
	.before_fork = loader_before_fork,
	.after_fork_in_parent = loader_after_fork_in_parent,
	.after_fork_in_child = loader_after_fork_in_child,
};
LOCK_DEFINE_GROUP(loader, LOCK_LOADER, &looks);
