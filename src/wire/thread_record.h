/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a thread's name.
 */
#pragma once

#include <stdint.h>

struct thread_record {
	uint32_t thread_id;
	char name[20]; /* as pthread_getname_np gives it, zero-terminated */
};
