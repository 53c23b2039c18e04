/* SPDX-License-Identifier: Apache-2.0 */
/* A stripped module with a static SQLite, like an addon of node. */
#include <sqlite3.h>
#include <stddef.h>

__attribute__((visibility("default"))) int module_run(int count);

int module_run(int count)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;
	int rc = sqlite3_open(":memory:", &db);

	if (!rc)
		rc = sqlite3_prepare_v2(db, "SELECT ? + 1", -1, &stmt, NULL);
	for (int i = 0; !rc && i < count; i++) {
		rc = sqlite3_step(stmt) != SQLITE_ROW;
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return rc ? rc : sqlite3_close(db);
}
