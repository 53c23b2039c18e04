/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds of the calling thread's stack, from the C library.
 */
#ifndef TESTS_LIB_THREAD_STACK_H
#define TESTS_LIB_THREAD_STACK_H

#include <pthread.h>
#include <stdint.h>

#include "base/frame_location.h"

static inline struct unwind_stack thread_stack(void)
{
	pthread_attr_t attributes;
	void *start;
	size_t size;

	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &start, &size);
	pthread_attr_destroy(&attributes);
	return (struct unwind_stack){ (uintptr_t)start, (uintptr_t)start + size };
}

#endif
