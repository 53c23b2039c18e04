/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a pthread mutex that only libc knows.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#if defined(__GLIBC__)

#define MUTEX_KIND_MASK 3 /* of the kinds that pthread_mutexattr_settype() has */

/* The word that is 0 while the mutex is free. */
static inline int mutex_lock_word(const pthread_mutex_t *mutex)
{
	return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
}

/* Of any mutex: the thread that has it; 0: none. */
static inline int mutex_owner_id(const pthread_mutex_t *mutex)
{
	return mutex->__data.__owner;
}

static inline bool mutex_is_recursive(const pthread_mutex_t *mutex)
{
	return (mutex->__data.__kind & MUTEX_KIND_MASK) == PTHREAD_MUTEX_RECURSIVE;
}

#else

/* musl's: the kind, then the lock. A plain mutex knows no owner: EBUSY is there, no thread of a program's
 * number. */
#define MUTEX_KIND_MASK 15
#define MUTEX_OWNER_MASK 0x3fffffff

static inline int mutex_lock_word(const pthread_mutex_t *mutex)
{
	return __atomic_load_n(&mutex->__u.__vi[1], __ATOMIC_RELAXED);
}

static inline bool mutex_is_recursive(const pthread_mutex_t *mutex)
{
	return (mutex->__u.__i[0] & MUTEX_KIND_MASK) == PTHREAD_MUTEX_RECURSIVE;
}

static inline int mutex_owner_id(const pthread_mutex_t *mutex)
{
	return (mutex->__u.__i[0] & MUTEX_KIND_MASK) == PTHREAD_MUTEX_NORMAL
	               ? 0
	               : mutex_lock_word(mutex) & MUTEX_OWNER_MASK;
}

#endif
