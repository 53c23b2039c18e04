/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a thread, by a key of pthread_key_create().
 *
 * A C library in a separate namespace (dlmopen()) numbers its keys from 0, too, and keeps their
 * values in the same memory of the thread. So queryprof's keys have the last numbers that need no
 * further memory, and a sequence number that no key has at its creation: the other library does not
 * mistake these values for its own. It may overwrite them, so `end` finds its data in a thread-local
 * variable, never in its argument.
 */
#pragma once

#include <pthread.h>

/* 0 or an errno value. */
int thread_key_create(pthread_key_t *key, void (*end)(void *unused));
