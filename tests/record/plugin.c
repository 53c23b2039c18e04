/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is linked with queryprof, and that a recorded program loads. It runs a labelled statement
 * inside a span of a trace. The span begins inline, by the variable in queryprof.h.
 */
#include <sqlite3.h>

#include "queryprof.h"

static int step(sqlite3 *db, const char *sql)
{
	QP_SPAN("of the plugin");
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

QP_API int plugin_work(const char *sql);

/* Returns 0, or the number of the call that failed. */
int plugin_work(const char *sql)
{
	const qp_label label = { .key = "from", .text = "plugin" };
	qp_label_set *labels;
	sqlite3 *db;
	uint64_t before;
	int failed = 0;

	if (qp_init(NULL))
		return 1;
	labels = qp_labels_new(&label, 1);
	before = qp_labels_enter(labels);
	if (sqlite3_open(":memory:", &db))
		failed = 2;
	else if (qp_trace_begin(NULL))
		failed = 3;
	else {
		failed = step(db, sql) ? 4 : 0;
		qp_trace_end();
	}
	sqlite3_close(db);
	qp_labels_leave(before);
	qp_labels_free(labels);
	return failed;
}
