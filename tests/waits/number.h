/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_WAITS_NUMBER_H
#define TESTS_WAITS_NUMBER_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stdint.h>

#include "../lib/must.h"

/* Returns the number in the first column of the first row. `format` is as for sqlite3_mprintf(). */
static inline int64_t number(sqlite3 *db, const char *format, ...)
{
	sqlite3_stmt *row = NULL;
	int64_t value;
	va_list values;
	char *sql;

	va_start(values, format);
	sql = sqlite3_vmprintf(format, values);
	va_end(values);
	must(db, sqlite3_prepare_v2(db, sql, -1, &row, NULL), sql);
	if (sqlite3_step(row) != SQLITE_ROW) {
		fprintf(stderr, "%s: no row: %s\n", sql, sqlite3_errmsg(db));
		exit(2);
	}
	value = sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	sqlite3_free(sql);
	return value;
}

#endif
