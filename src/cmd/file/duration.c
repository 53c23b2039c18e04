/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/duration.h"

void duration_text(double ns, char *text, size_t room)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	size_t unit = 0;

	while (unit < 3 && ns < units[unit].ns)
		unit++;
	const double value = ns / units[unit].ns;
	sqlite3_snprintf((int)room, text, value < 10 ? "%.1f %s" : "%,.0f %s", value, units[unit].name);
}

static void duration(sqlite3_context *context, int count, sqlite3_value **values)
{
	char text[64];

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	duration_text(sqlite3_value_double(values[0]), text, sizeof(text));
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

int duration_add(sqlite3 *db)
{
	return sqlite3_create_function(db, "duration", 1,
	                               SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, duration,
	                               NULL, NULL);
}
