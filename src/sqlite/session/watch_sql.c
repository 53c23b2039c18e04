/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/watch_sql.h"

static const struct watch_sql *current;

const struct watch_sql *watch_sql(void)
{
	/* acquire: the structure's content, if another thread set it */
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

void watch_sql_set(const struct watch_sql *sql)
{
	__atomic_store_n(&current, sql, __ATOMIC_RELEASE);
}
