/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a thread, by a key of pthread_key_create().
 *
 * A C library in a namespace of its own (dlmopen()) numbers its keys from 0, too, and keeps their values in
 * the same memory of the thread as ours. So our keys have the last numbers that need no further memory, and
 * a sequence number that no key has at its creation: the other library does not read our values for its own.
 * It may overwrite ours: `end` finds what it ends in a thread-local variable, never in its argument.
 */
#ifndef QUERYPROF_BASE_THREAD_KEY_H
#define QUERYPROF_BASE_THREAD_KEY_H

#include <pthread.h>

/* 0 or an errno value. */
int thread_key_create(pthread_key_t *key, void (*end)(void *unused));

#endif
