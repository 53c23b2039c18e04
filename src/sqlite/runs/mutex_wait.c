/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/runs/mutex_wait.h"

#include <errno.h>
#include <unistd.h>

#include "base/mutex_words.h"
#include "collect/state.h"
#include "query/wait.h"
#include "sqlite/runs/operations.h"

/* A connection's mutex is recursive. A host that has it already does not wait. */
static bool may_wait_for_connection(const pthread_mutex_t *mutex)
{
	if (sessions_idle() || !sampler_ring() || !mutex_is_recursive(mutex))
		return false;
	return mutex_owner_id(mutex) != (thread_current ? (int)thread_current->id : gettid());
}

static int lock_outside(pthread_mutex_t *mutex, const void *caller,
                        int (*lock)(pthread_mutex_t *mutex, const void *caller))
{
	int saved_errno = errno, result;
	struct run_call call;

	if (!may_wait_for_connection(mutex))
		return lock(mutex, caller);
	operation_begin_wait(&call, mutex, __builtin_frame_address(0));
	errno = saved_errno;
	result = lock(mutex, caller);
	saved_errno = errno;
	operation_end(&call, SQLITE_OK);
	errno = saved_errno;
	return result;
}

void mutex_wait_follow(void)
{
	wait_set_lock_outside(lock_outside);
}
