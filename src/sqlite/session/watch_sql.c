/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/session/watch_sql.h"

const struct watch_sql *watch_sql_current;

void watch_sql_set(const struct watch_sql *sql)
{
	__atomic_store_n(&watch_sql_current, sql, __ATOMIC_RELEASE);
}
