/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_process.h"

#include <sys/types.h>
#include <unistd.h>

static pid_t owner; /* atomic */

bool own_process_is_here(void)
{
	/* Relaxed: it implies nothing about other memory. */
	return __atomic_load_n(&owner, __ATOMIC_RELAXED) == getpid();
}

__attribute__((constructor)) void own_process_renew(void)
{
	__atomic_store_n(&owner, getpid(), __ATOMIC_RELAXED);
}
