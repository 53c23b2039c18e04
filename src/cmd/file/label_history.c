/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/label_history.h"

#include <sqlite3.h>
#include <stdio.h>

#include "cmd/file/out_file.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/ui/output.h"

static int write_rows(sqlite3 *db, const char *path, FILE *out)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(
		db,
		"SELECT hostname, process_id, trampoline, address, key, value, from_ns, until_ns"
		" FROM label_history ORDER BY process_id, from_ns, trampoline, key",
		-1, &row, NULL);

	for (int i = 0; !code && i < sqlite3_column_count(row); i++)
		fprintf(out, "%s%s", i ? "," : "", sqlite3_column_name(row, i));
	while (!code && (code = sqlite3_step(row)) == SQLITE_ROW) {
		fputc('\n', out);
		for (int i = 0; i < sqlite3_column_count(row); i++) {
			if (i)
				fputc(',', out);
			if (sqlite3_column_type(row, i) == SQLITE_TEXT)
				output_csv_quoted(out, (const char *)sqlite3_column_text(row, i));
			else if (sqlite3_column_type(row, i) == SQLITE_INTEGER)
				fprintf(out, "%lld", (long long)sqlite3_column_int64(row, i));
		}
		code = SQLITE_OK;
	}
	fputc('\n', out);
	sqlite3_finalize(row);
	return code == SQLITE_DONE ? COMMAND_FINE : complain("%s: %s", path, sqlite3_errmsg(db));
}

int label_history_export(const char *path, const char *out_path)
{
	struct out_file out;
	sqlite3 *db;
	int result, closed;

	if (!(db = trace_file_open(path)))
		return COMMAND_FAILED;
	result = out_file_open(&out, out_path, (const char *const[]){ path, NULL });
	if (result == COMMAND_FINE) {
		result = write_rows(db, path, out.stream);
		closed = out_file_close(&out, result == COMMAND_FINE);
		result = result ? result : closed;
	}
	trace_file_close(db);
	return result;
}
