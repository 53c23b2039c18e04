/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutexes of the private SQLite, including recursive ones: those of base/lock.h, in the memory of
 * libc's. Connections have none (SQLITE_OPEN_NOMUTEX); these are for the data that connections share.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

/* All zeroes is PTHREAD_MUTEX_INITIALIZER. */
struct own_mutex {
	struct mutex mutex;
	bool is_recursive;
	uint32_t count;    /* only the owner knows more than 1 */
	const void *owner; /* atomic; own_address() of a thread */
};

_Static_assert(sizeof(struct own_mutex) <= sizeof(pthread_mutex_t), "it has libc's room");
_Static_assert(sizeof(int) <= sizeof(pthread_mutexattr_t), "as has its type");

/* Different for each thread, and the same in a forked child. */
static const void *own_address(void)
{
	static __thread char byte;

	return &byte;
}

/* Relaxed: a thread sees its own address only if it wrote it itself. */
static bool is_owner(const struct own_mutex *own)
{
	return __atomic_load_n(&own->owner, __ATOMIC_RELAXED) == own_address();
}

static void set_owner(struct own_mutex *own, const void *owner)
{
	own->count = owner != NULL;
	__atomic_store_n(&own->owner, owner, __ATOMIC_RELAXED);
}

int pthread_mutexattr_init(pthread_mutexattr_t *attributes)
{
	*(int *)attributes = PTHREAD_MUTEX_NORMAL;
	return 0;
}

int pthread_mutexattr_settype(pthread_mutexattr_t *attributes, int type)
{
	*(int *)attributes = type;
	return 0;
}

int pthread_mutexattr_destroy(pthread_mutexattr_t *attributes)
{
	(void)attributes;
	return 0;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	*(struct own_mutex *)mutex = (struct own_mutex){
		.is_recursive = attributes && *(const int *)attributes == PTHREAD_MUTEX_RECURSIVE,
	};
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

NOT_ANALYSED int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct own_mutex *own = (struct own_mutex *)mutex;

	if (own->is_recursive && is_owner(own)) {
		own->count++;
		return 0;
	}
	lock_acquire(&own->mutex);
	set_owner(own, own_address());
	return 0;
}

NOT_ANALYSED int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	struct own_mutex *own = (struct own_mutex *)mutex;

	if (own->is_recursive && is_owner(own)) {
		own->count++;
		return 0;
	}
	if (!lock_try(&own->mutex))
		return EBUSY;
	set_owner(own, own_address());
	return 0;
}

NOT_ANALYSED int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	struct own_mutex *own = (struct own_mutex *)mutex;

	if (--own->count)
		return 0;
	set_owner(own, NULL);
	lock_release(&own->mutex);
	return 0;
}
