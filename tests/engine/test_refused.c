/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refused calls of queryprof.h, before and while queryprof runs. Each returns the documented code, and an
 * error that names the function or the member. After each, a valid call succeeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <queryprof.h>
#include <stdbool.h>
#include <string.h>

#define REFUSED(expected, named, call)                                                                       \
	do {                                                                                                 \
		assert_int_equal(call, expected);                                                            \
		if (!strstr(qp_error(), named))                                                              \
			fail_msg("%s: %s", #call, qp_error());                                               \
	} while (0)

static void assert_setting(const char *name, const char *expected)
{
	char value[64];

	assert_int_equal(qp_get(NULL, name, value, sizeof(value)), QP_OK);
	assert_string_equal(value, expected);
}

static int read_ring(void *bytes, const qp_metric *metric)
{
	bool is_it = !strcmp(metric->name, "ring_bytes");

	if (is_it)
		*(int64_t *)bytes = metric->value;
	return is_it;
}

static void test_before(void **state)
{
	int64_t ring = 0;
	/* As in a program compiled with a newer header. */
	struct {
		qp_config known;
		int64_t unknown;
	} newer = { { .size = sizeof(newer), .trace_log_path = "/nonexistent/trace" }, -1 };

	(void)state;
	REFUSED(QP_NOT_RUNNING, "qp_flush", qp_flush(1000));
	REFUSED(QP_NOT_RUNNING, "qp_query_begin", qp_query_begin(NULL));
	REFUSED(QP_NOT_RUNNING, "qp_query_end", qp_query_end(0, NULL));
	REFUSED(QP_NOT_RUNNING, "qp_thread_register", qp_thread_register());
	REFUSED(QP_INVALID, "qp_config.size = 1", qp_init(&(qp_config){ .size = 1 }));
	/* A refused call changes nothing: neither a partial start nor a setting remains. */
	REFUSED(QP_INVALID, "trace_log_max_bytes = -1",
	        qp_init(&(qp_config){ .size = sizeof(qp_config),
	                              .trace_log_path = "/tmp/trace",
	                              .trace_log_max_bytes = -1 }));
	assert_setting("trace_log_path", "");
	REFUSED(QP_STORE, "/nonexistent/trace",
	        qp_init(&(qp_config){ .size = sizeof(qp_config),
	                              .trace_log_path = "/nonexistent/trace",
	                              .trace_log_flush_interval_ms = 77,
	                              .trace_log_ring_bytes = 65536 }));
	assert_setting("trace_log_path", "");
	assert_setting("trace_log_flush_interval_ms", "1000");
	REFUSED(QP_STORE, "/nonexistent/trace", qp_init(&newer.known));
	/* The ring is the exception, because it already exists. */
	REFUSED(QP_LOCKED, "fixed at 65536 bytes",
	        qp_init(&(qp_config){ .size = sizeof(qp_config), .trace_log_ring_bytes = 131072 }));
	/* As in a program compiled with an older header: the later members do not belong to its structure. */
	assert_int_equal(qp_init(&(qp_config){ .size = offsetof(qp_config, trace_log_max_bytes),
	                                       .trace_log_max_bytes = -1,
	                                       .trace_log_flush_interval_ms = -1 }),
	                 QP_OK);
	assert_int_equal(qp_init(NULL), QP_OK);
	assert_int_equal(qp_metrics(read_ring, &ring), QP_OK);
	assert_int_equal(ring, 65536);
	assert_setting("trace_log_ring_bytes", "65536");
}

static void test_queries(void **state)
{
	char id[1000];

	(void)state;
	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = 0;
	REFUSED(QP_INVALID, "qp_query.size = 2", qp_query_begin(&(qp_query){ .size = 2 }));
	REFUSED(QP_INVALID, "qp_query.query_id has 999 bytes",
	        qp_query_begin(&(qp_query){ .size = sizeof(qp_query), .query_id = id }));
	REFUSED(QP_NOT_RUNNING, "qp_query_end", qp_query_end(0, NULL));
	assert_int_equal(qp_query_begin(NULL), QP_OK);
	assert_int_equal(qp_query_end(0, NULL), QP_OK);
	assert_int_equal(qp_thread_register(), QP_OK);
	assert_int_equal(qp_flush(10000), QP_OK);
}

/* A handle belongs to one query, and ends with it. */
static void test_handles(void **state)
{
	qp_query_handle *handle = qp_query_start(NULL), *other;

	(void)state;
	REFUSED(QP_INVALID, "qp_query_finish", qp_query_finish(NULL, 0, NULL));
	assert_int_equal(qp_query_finish(handle, 0, NULL), QP_OK);
	REFUSED(QP_INVALID, "has already ended", qp_query_finish(handle, 0, NULL));
	assert_null(qp_query_enter(handle));
	assert_null(qp_context_get().query);
	handle = qp_query_start(NULL);
	other = qp_query_start(NULL);
	assert_ptr_not_equal(handle, other);
	/* The thread would return to a query that has ended meanwhile. */
	assert_null(qp_query_enter(handle));
	assert_ptr_equal(qp_query_enter(other), handle);
	assert_int_equal(qp_query_finish(handle, 0, NULL), QP_OK);
	qp_query_leave(handle);
	assert_null(qp_context_get().query);
	assert_int_equal(qp_query_finish(other, 0, NULL), QP_OK);
}

static void test_settings(void **state)
{
	char value[64];

	(void)state;
	REFUSED(QP_INVALID, "qp_set", qp_set(NULL, NULL, "1"));
	REFUSED(QP_INVALID, "qp_get", qp_get(NULL, "log_queries", value, 0));
	REFUSED(QP_INVALID, "qp_set_label", qp_set_label(NULL, "", "text"));
	REFUSED(QP_NOT_FOUND, "no_such", qp_get(NULL, "no_such", value, sizeof(value)));
	assert_int_equal(qp_set(NULL, "query_profiler_cpu_time_period_ns", "2000000"), QP_OK);
	assert_int_equal(qp_get(NULL, "query_profiler_cpu_time_period_ns", value, sizeof(value)), QP_OK);
	assert_string_equal(value, "2000000");
}

static void test_connections(void **state)
{
	sqlite3 *db;
	char value[64];

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	REFUSED(QP_INVALID, "qp_attach", qp_attach(NULL));
	REFUSED(QP_INVALID, "qp_attach", qp_attach_of(NULL, NULL));
	REFUSED(QP_INVALID, "qp_sqlite.size = 0", qp_attach_of(db, NULL));
	REFUSED(QP_INVALID, "qp_trace", qp_trace(db, 0, NULL, NULL));
	REFUSED(QP_INVALID, "qp_attach", qp_set(db, "log_queries", "1"));
	REFUSED(QP_INVALID, "qp_attach", qp_get(db, "log_queries", value, sizeof(value)));
	REFUSED(QP_INVALID, "qp_attach", qp_set_label(db, "key", "text"));
	assert_int_equal(qp_attach(db), QP_OK);
	assert_int_equal(qp_set_label(db, "key", "text"), QP_OK);
	assert_int_equal(qp_get(db, "query_profiler_labels", value, sizeof(value)), QP_OK);
	assert_string_equal(value, "{\"key\":\"text\"}");
	assert_int_equal(qp_trace(db, 0, NULL, NULL), QP_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before),      cmocka_unit_test(test_queries),
		cmocka_unit_test(test_handles),     cmocka_unit_test(test_settings),
		cmocka_unit_test(test_connections),
	};
	const int failed = cmocka_run_group_tests_name("engine_refused", tests, NULL, NULL);

	return qp_shutdown() || failed;
}
