/* SPDX-License-Identifier: Apache-2.0 */
/* Settings without a connection: allowed values, messages for others, the sources of values, and that nothing
 * changes if the store refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_store.h"
#include "queryprof.h"
#include "recorder/ring_size.h"
#include "settings/settings.h"
#include "sqlite/session/session_settings.h"
#include "store/settings.h"

#define CPU "query_profiler_cpu_time_period_ns"
#define REAL "query_profiler_real_time_period_ns"

static struct session_settings session;

static int setup(void **state)
{
	(void)state;
	session_defaults(&session);
	fake_store_refusal = NULL;
	fake_store_calls = 0;
	return 0;
}

/* Sets a setting and returns the code. Checks that there is an error text exactly if it failed. */
static int set(struct session_settings *of, const char *name, const char *value, char *sentence)
{
	char *error = NULL;
	int code = settings_set(of, name, value, SETTING_FROM_SQL, &error);

	if (!code != !error)
		fail_msg("%s = %s: code %d, sentence %s", name, value, code, error ? error : "NULL");
	sentence[0] = 0;
	if (error)
		strcpy(sentence, error);
	free(error);
	return code;
}

static void check_value(const struct session_settings *of, const char *name, const char *value)
{
	char *text = settings_get(of, name);

	if (!text || strcmp(text, value))
		fail_msg("%s is %s, expected %s", name, text ? text : "NULL", value);
	free(text);
}

static void expect_set(struct session_settings *of, const char *name, const char *value, const char *becomes)
{
	char sentence[8192];
	int code = set(of, name, value, sentence);

	if (code)
		fail_msg("%s = %s: code %d, %s", name, value, code, sentence);
	check_value(of, name, becomes);
}

static void expect_refused(struct session_settings *of, const char *name, const char *value, int expected,
                           const char *says)
{
	char *before = settings_get(of, name), sentence[8192];
	int code = set(of, name, value, sentence);

	if (code != expected || (says && strcmp(sentence, says)))
		fail_msg("%s = %s: code %d, says\n  %s\nexpected code %d and\n  %s", name, value, code,
		         sentence, expected, says);
	if (before)
		check_value(of, name, before);
	free(before);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *name, *value, *becomes;
	} good[] = {
		{ CPU, "1000000", "1000000" },
		{ CPU, " 1000000\n", "1000000" },
		{ CPU, "+1000000", "1000000" },
		{ CPU, "0", "0" },
		{ CPU, "-0", "0" },
		{ CPU, "10000", "10000" },
		{ CPU, "3600000000000", "3600000000000" },
		{ CPU, "1e6", "1000000" },
		{ CPU, "1000000.0", "1000000" },
		{ CPU, "1.5e6", "1500000" },
		{ CPU, "1000000e0", "1000000" },
		{ CPU, "100000000e-2", "1000000" },
		{ CPU, "10ms", "10000000" },
		{ CPU, "10 ms", "10000000" },
		{ CPU, "1.5MS", "1500000" },
		{ CPU, "500us", "500000" },
		{ CPU, "1s", "1000000000" },
		{ CPU, "1 min", "60000000000" },
		{ CPU, "1h", "3600000000000" },
		{ CPU, "20000ns", "20000" },
		{ CPU, "0.00001s", "10000" },
		{ CPU, "0s", "0" },
		{ CPU, "00000000000000000000000000000000010000", "10000" },
		{ "trace_log_max_bytes", "64MiB", "67108864" },
		{ "trace_log_max_bytes", "1.5 GiB", "1610612736" },
		{ "trace_log_max_bytes", "9223372036854775807", "9223372036854775807" },
		{ "trace_log_flush_interval_ms", "2s", "2000" },
		{ "trace_log_flush_interval_ms", "5000us", "5" },
		{ "trace_log_flush_interval_ms", "5e3us", "5" },
		{ "log_queries", "off", "0" },
		{ "log_queries", "TRUE", "1" },
		{ "log_queries", "No", "0" },
		{ "LOG_Queries", "1", "1" },
		{ "query_id", "", "" },
		{ "query_id", " a b ", " a b " },
	};
	static const struct {
		const char *name, *value;
	} bad[] = {
		{ CPU, "" },
		{ CPU, " " },
		{ CPU, "x" },
		{ CPU, "1x" },
		{ CPU, "-1" },
		{ CPU, "9999" },
		{ CPU, "3600000000001" },
		{ CPU, "1.5" },
		{ CPU, "10000.5" },
		{ CPU, "." },
		{ CPU, "1e" },
		{ CPU, "1e99" },
		{ CPU, "1e-99" },
		{ CPU, "0x10000" },
		{ CPU, "1_000_000" },
		{ CPU, "10 m s" },
		{ CPU, "1 MiB" },
		{ CPU, "1 day" },
		{ CPU, "99999999999999999999999999999999999999999999999999" },
		{ CPU, "18446744073709561616" },
		{ CPU, "1e38s" },
		{ CPU, "NULL" },
		{ CPU, "1.2.3" },
		{ CPU, "--1" },
		{ CPU, "1000000;" },
		{ "trace_log_max_bytes", "1" },
		{ "trace_log_max_bytes", "9223372036854775808" },
		{ "trace_log_max_bytes", "1 s" },
		{ "trace_log_flush_interval_ms", "0" },
		{ "trace_log_flush_interval_ms", "500us" },
		{ "log_queries", "2" },
		{ "log_queries", "" },
		{ "log_queries", "yes please" },
		{ "trace_log_ring_bytes", "4095" },
		{ "trace_log_ring_bytes", "2GiB" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		expect_set(&session, good[i].name, good[i].value, good[i].becomes);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_refused(&session, bad[i].name, bad[i].value, QP_INVALID, NULL);
}

static void test_sentences(void **state)
{
	char *longer = malloc(5000);

	(void)state;
	expect_refused(&session, CPU, "5", QP_INVALID, CPU " = 5: expected 0 (off) or 10us to 1h");
	expect_refused(&session, "trace_log_max_bytes", "5", QP_INVALID,
	               "trace_log_max_bytes = 5: expected 0 (no bound) or 1MiB to 9223372036854775807 bytes");
	expect_refused(&session, "log_queries", "maybe", QP_INVALID,
	               "log_queries = maybe: expected 0 (off) or 1 (on)");
	expect_refused(&session, "nothing", "1", QP_NOT_FOUND,
	               "nothing: there is no such setting; SELECT name FROM system.settings lists them");
	/* A long value is truncated, but not inside a character of several bytes. */
	memset(longer, 'x', 4999);
	longer[4999] = 0;
	memcpy(longer + 59, "ä", 2);
	expect_refused(&session, "query_id", longer, QP_INVALID,
	               "query_id = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…: "
	               "expected a text of at most 128 bytes");
	expect_refused(&session, "trace_log_path", longer, QP_INVALID, NULL);
	longer[QUERY_ID_MAX + 1] = 0;
	expect_refused(&session, "query_id", longer, QP_INVALID, NULL);
	longer[QUERY_ID_MAX] = 0;
	expect_set(&session, "query_id", longer, longer);
	free(longer);
}

/* A session's own setting, the settings of new sessions, and the effect of DEFAULT on both. */
static void test_scopes(void **state)
{
	struct session_settings other;

	(void)state;
	expect_set(&session, CPU, "1ms", "1000000");
	check_value(NULL, CPU, "10000000");
	assert_int_equal(session.period_ns[TIMER_CPU], 1000000);

	expect_set(NULL, CPU, "2ms", "2000000");
	check_value(&session, CPU, "1000000");
	session_defaults(&other);
	check_value(&other, CPU, "2000000");

	expect_set(&session, CPU, "default", "2000000");
	expect_set(NULL, CPU, "DEFAULT", "10000000");
	expect_set(&session, CPU, "Default", "10000000");

	expect_set(&session, "trace_log_max_bytes", "2MiB", "2097152");
	check_value(&other, "trace_log_max_bytes", "2097152");
	expect_set(&other, "trace_log_max_bytes", "DEFAULT", "1073741824");
	check_value(NULL, "trace_log_max_bytes", "1073741824");
}

static void test_path(void **state)
{
	char folder[1024], expected[2048];

	(void)state;
	assert_non_null(getcwd(folder, sizeof(folder)));
	snprintf(expected, sizeof(expected), "%s/%s", folder, "app.trace");
	expect_set(&session, "trace_log_path", "app.trace", expected);
	expect_set(&session, "trace_log_path", "/a/b.trace", "/a/b.trace");
	expect_set(&session, "trace_log_path", "DEFAULT", "");
}

static void test_paths(void **state)
{
	char folder[1024], expected[2300];

	(void)state;
	check_value(NULL, "debug_path", "/usr/lib/debug");
	assert_string_equal(fake_debug_path, ""); /* the default applies without a call */
	assert_non_null(getcwd(folder, sizeof(folder)));
	snprintf(expected, sizeof(expected), "/a:%s/b:%s/c d:/e", folder, folder);
	expect_set(&session, "debug_path", "/a:b::c d:/e:", expected);
	assert_string_equal(fake_debug_path, expected);
	expect_set(&session, "debug_path", "", "");
	assert_string_equal(fake_debug_path, "");
	expect_set(&session, "debug_path", "DEFAULT", "/usr/lib/debug");
	assert_string_equal(fake_debug_path, "/usr/lib/debug");
}

/* Before the library runs, a change is only remembered. Afterwards it is a request to the store. */
static void test_store(void **state)
{
	struct store_config config;

	(void)state;
	expect_set(&session, "trace_log_flush_interval_ms", "100", "100");
	assert_int_equal(fake_store_calls, 0);
	expect_set(&session, "trace_log_ring_bytes", "64KiB", "65536");
	assert_int_equal(ring_size(), 65536);

	store_settings(&config);
	assert_int_equal(config.flush_interval_ns, 100000000);
	assert_int_equal(config.max_bytes, 1 << 30);
	assert_string_equal(config.path, "");
	free((char *)config.path);
	ring_size_fix();
	fake_store_is_started = true;

	expect_set(&session, "trace_log_path", "/x.trace", "/x.trace");
	expect_set(&session, "trace_log_max_bytes", "2MiB", "2097152");
	assert_int_equal(fake_store_calls, 2);
	assert_string_equal(fake_store_path, "/x.trace");
	assert_int_equal(fake_store_config.max_bytes, 2097152);
	assert_int_equal(fake_store_config.flush_interval_ns, 100000000);

	fake_store_refusal = "No such file or directory";
	expect_refused(&session, "trace_log_path", "/y.trace", QP_STORE,
	               "trace_log_path = /y.trace: No such file or directory");
	expect_refused(&session, "trace_log_path", "DEFAULT", QP_STORE, NULL);
	fake_store_refusal = NULL;
	expect_set(&session, "trace_log_flush_interval_ms", "200", "200");
	assert_string_equal(fake_store_path, "/x.trace");

	/* The store is not called for a session's settings. */
	fake_store_calls = 0;
	expect_set(&session, CPU, "1ms", "1000000");
	assert_int_equal(fake_store_calls, 0);

	/* The ring's size is fixed permanently. */
	expect_refused(&session, "trace_log_ring_bytes", "128KiB", QP_LOCKED,
	               "trace_log_ring_bytes = 128KiB: fixed at 65536 bytes since the library started; set "
	               "QUERYPROF_TRACE_LOG_RING_BYTES in the environment, or qp_config.trace_log_ring_bytes "
	               "for qp_init()");
	expect_set(&session, "trace_log_ring_bytes", "64KiB", "65536");
	fake_store_is_started = false;
	expect_refused(&session, "trace_log_ring_bytes", "128KiB", QP_LOCKED, NULL);
	fake_store_calls = 0;
	expect_set(&session, "trace_log_path", "DEFAULT", "");
	assert_int_equal(fake_store_calls, 0);
}

/* main() has set these variables. */
static void test_environment(void **state)
{
	const char *error = settings_environment_error();

	(void)state;
	check_value(NULL, REAL, "5000000");
	check_value(&session, REAL, "5000000");
	expect_set(&session, REAL, "0", "0");
	expect_set(&session, REAL, "DEFAULT", "5000000");
	check_value(NULL, "query_id", "");
	check_value(NULL, "log_queries", "1");
	check_value(NULL, "log_queries_min_query_duration_ns", "10000000");
	assert_non_null(error);
	assert_string_equal(error, "environment: log_queries = perhaps: expected 0 (off) or 1 (on); "
	                           "environment: log_queries_min_query_duration_ns = -5: expected 0 to 1h");
}

static void test_table(void **state)
{
	const char *before = "";

	(void)state;
	for (const struct setting *setting = NULL; (setting = settings_next(setting));) {
		char *value = settings_get(&session, setting->name),
		     *by_default = settings_get_default(&session, setting->name);

		assert_true(strcmp(before, setting->name) < 0);
		before = setting->name;
		assert_ptr_equal(settings_find(setting->name), setting);
		assert_non_null(value);
		assert_non_null(by_default);
		assert_non_null(setting->unit);
		if (!setting->description || !setting->description[0])
			fail_msg("%s has no description", setting->name);
		/* Each displayed value can be set. */
		if (strcmp(setting->name, "trace_log_ring_bytes"))
			expect_set(&session, setting->name, value, value);
		free(value);
		free(by_default);
	}
	assert_string_equal(before, "trace_log_symbolize");
	assert_null(settings_find(""));
	assert_null(settings_find("query_id2"));
	assert_non_null(settings_find("QUERY_ID"));
	assert_null(settings_get(&session, "nothing"));
}

static void test_lock(void **state)
{
	char *error = NULL;

	(void)state;
	settings_lock();
	expect_refused(&session, CPU, "2ms", QP_LOCKED,
	               CPU " = 2ms: settings are locked by the host program");
	expect_refused(&session, "trace_log_path", "/z", QP_LOCKED, NULL);
	assert_int_equal(settings_set(&session, CPU, "2ms", SETTING_FROM_C, &error), QP_OK);
	check_value(&session, CPU, "2000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_environment, setup), cmocka_unit_test_setup(test_numbers, setup),
		cmocka_unit_test_setup(test_sentences, setup),   cmocka_unit_test_setup(test_scopes, setup),
		cmocka_unit_test_setup(test_path, setup),        cmocka_unit_test_setup(test_paths, setup),
		cmocka_unit_test_setup(test_store, setup),       cmocka_unit_test_setup(test_table, setup),
		cmocka_unit_test_setup(test_lock, setup), /* last, because it is permanent */
	};

	setenv("QUERYPROF_QUERY_PROFILER_REAL_TIME_PERIOD_NS", "5ms", 1);
	setenv("QUERYPROF_QUERY_ID", "everybody", 1);
	setenv("QUERYPROF_LOG_QUERIES", "perhaps", 1);
	setenv("QUERYPROF_LOG_QUERIES_MIN_QUERY_DURATION_NS", "-5", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
