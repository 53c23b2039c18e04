/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What glibc has had for a few years only (cmake/glibc.cmake says from which version on we run): weak, so
 * NULL where it is missing. Each user says what is lost then.
 */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#if defined(__GLIBC__)

/* 2.35: the object of an address, without a lock. */
#pragma weak _dl_find_object

/* 2.32: an error's text, without a translation. */
#pragma weak strerrordesc_np

#else /* musl has none of them */

struct dl_find_object {
	void *dlfo_map_start, *dlfo_map_end, *dlfo_eh_frame;
};
static int (*const _dl_find_object)(void *address, struct dl_find_object *found) = NULL;

#endif

/* 2.35: where a thread's rseq area is, from its thread pointer, and its size; 0: not registered. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
