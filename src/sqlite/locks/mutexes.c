/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's own sqlite3_mutex begins with the pthread_mutex_t that the thread waits for, so both have
 * the same address. If a host has its own mutexes, none of these addresses occurs.
 */
#include "sqlite/locks/mutexes.h"

#include "query/wait.h"

void mutexes_follow(struct session *session)
{
	static const struct {
		int number;
		enum wait_object object;
	} statics[] = {
		{ SQLITE_MUTEX_STATIC_MEM, WAIT_ON_ALLOCATOR },
		{ SQLITE_MUTEX_STATIC_LRU, WAIT_ON_PAGE_CACHE },
		{ SQLITE_MUTEX_STATIC_PMEM, WAIT_ON_PAGE_CACHE },
	};

	__atomic_store_n(&session->mutex, sqlite3_db_mutex(session->db), __ATOMIC_RELAXED);
	wait_set_connections(session_has_mutex);
	/* To allocate a static mutex is to look it up. */
	for (size_t i = 0; i < sizeof(statics) / sizeof(*statics); i++)
		wait_add_mutex(sqlite3_mutex_alloc(statics[i].number), statics[i].object);
}
