/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens each given file as the trace file of a process, stores into it, reads from it, and closes it. It must
 * end normally for any file. Prints what the store could not do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../store/support.h"

static void read_all(const char *sql)
{
	struct store_cursor *cursor;
	char *error = NULL;
	size_t size;
	int code;

	cursor = store_select(sql, NULL, &error);
	if (!cursor) {
		printf("  %s: %s\n", sql, error);
		free(error);
		return;
	}
	while ((code = store_step(cursor)) == 1) {
		for (int column = 0; column < 4; column++) {
			store_column_type(cursor, column);
			store_column_int64(cursor, column);
			store_column_bytes(cursor, column, &size);
		}
	}
	if (code)
		printf("  %s: %s\n", sql, store_cursor_error(cursor));
	store_close(cursor);
}

static void use(const char *path)
{
	struct query_key key = { 0x0190000000007000ull, 1 };
	struct a_query query = { .query_id = "mine",
		                 .query = "SELECT 1",
		                 .database = "main",
		                 .exception = "",
		                 .record = { .query = key, .start_realtime_ns = T0 } };
	char *error = NULL;

	printf("%s\n", path);
	fflush(stdout); /* if the program crashes, the last line names the file */
	start_store(path, 1 << 20);
	if (store_open(&error))
		printf("  %s\n", error);
	free(error);
	put_thread(4242, "one");
	put_samples(T0, 40, 7, key);
	put_query(&query);
	if (!store_drain(60000))
		abort();
	read_all("SELECT timestamp_ns, trace_type, query_id, trace FROM trace_log LIMIT 2000");
	read_all("SELECT timestamp_ns, thread_name, symbols, lines FROM trace_log LIMIT 20");
	read_all("SELECT query_id, initial_query_id, query, exception FROM query_log LIMIT 2000");
	for (uint64_t address = 1; address; address <<= 1)
		store_locate(address | 0x123);
	error = store_error();
	if (error)
		printf("  %s\n", error);
	free(error);
	stop_store();
}

int main(int count, char **paths)
{
	for (int i = 1; i < count; i++)
		use(paths[i]);
	return 0;
}
