/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/wait.h"

#include <stddef.h>

/* As in the views wait_causes and wait_objects of sql/schema/store_schema.sql. */
static const char *const causes[] = {
	[WAIT_LOCK] = "lock",           [WAIT_SYNC] = "sync",
	[WAIT_READ] = "read",           [WAIT_WRITE] = "write",
	[WAIT_SPILL] = "spill",         [WAIT_CHECKPOINT] = "checkpoint",
	[WAIT_MUTEX] = "mutex",         [WAIT_CONDITION] = "condition",
	[WAIT_SLEEP] = "sleep",         [WAIT_NETWORK] = "network",
	[WAIT_POLL] = "poll",           [WAIT_THREAD] = "thread",
	[WAIT_FILE] = "file",           [WAIT_USER_FUNCTION] = "user function",
	[WAIT_FUTEX] = "futex",         [WAIT_PAGE_FAULT] = "page fault",
	[WAIT_RUN_QUEUE] = "run queue", [WAIT_PROCESS] = "process",
};

static const char *const locks[] = {
	[WAIT_ON_SHARED] = "SHARED",           [WAIT_ON_RESERVED] = "RESERVED",
	[WAIT_ON_PENDING] = "PENDING",         [WAIT_ON_EXCLUSIVE] = "EXCLUSIVE",
	[WAIT_ON_WAL_WRITE] = "WAL write",     [WAIT_ON_WAL_CHECKPOINT] = "WAL checkpoint",
	[WAIT_ON_WAL_RECOVER] = "WAL recover", [WAIT_ON_WAL_READ] = "WAL read",
};

static const char *name_in(const char *const *names, size_t count, uint32_t number)
{
	return number < count && names[number] ? names[number] : "";
}

const char *wait_cause_name(uint32_t cause)
{
	return name_in(causes, sizeof(causes) / sizeof(*causes), cause);
}

const char *wait_lock_name(uint32_t object)
{
	return name_in(locks, sizeof(locks) / sizeof(*locks), object);
}
