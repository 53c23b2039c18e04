/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Label sets through the public interface: the labels of samples, nesting, and freed sets.
 */
#include <cstdarg>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" {
#include <cmocka.h>
}
#include <queryprof.hpp>
#include <sqlite3.h>

#include "pool.h"

#define BURN_NS 300000000u /* enough for samples at ticks on a busy machine */

/* Returns the distinct label sets of the query's samples. */
static std::string labels_of(const char *id)
{
	return ask("SELECT group_concat(labels, ' ') FROM (SELECT DISTINCT labels FROM trace_log WHERE "
	           "query_id = '" +
	           std::string(id) + "' ORDER BY labels)");
}

template <typename F> static void in_query(const char *id, F function)
{
	qp_query query = {};

	query.size = sizeof(query);
	query.text = id;
	query.query_id = id;
	assert_int_equal(qp_query_begin(&query), QP_OK);
	function();
	assert_int_equal(qp_query_end(0, NULL), QP_OK);
}

static void test_kinds(void **)
{
	queryprof::DynamicLabel text("route", "users#show"), number("bytes", 4096, "bytes");

	in_query("none", [] { burn(BURN_NS); });
	in_query("run", [&] { text.apply([] { burn(BURN_NS); }); });
	in_query("number", [&] { number.apply([] { burn(BURN_NS); }); });
	in_query("enter", [&] {
		queryprof::LabelScope scope(text);
		burn(BURN_NS);
	});
	assert_string_equal(labels_of("none").c_str(), "{}");
	assert_true(labels_of("run").find("{\"route\":\"users#show\"}") != std::string::npos);
	assert_true(labels_of("number").find("{\"bytes\":4096}") != std::string::npos);
	assert_true(labels_of("enter").find("{\"route\":\"users#show\"}") != std::string::npos);
	assert_string_equal(ask("SELECT unit FROM label_values WHERE key = 'bytes'").c_str(), "bytes");
	/* With SQLite alone, without queryprof. */
	assert_string_equal(ask("SELECT labels->>'route' FROM query_log WHERE query_id = 'run'").c_str(),
	                    "users#show");
	assert_string_equal(
		ask("SELECT labels->>'route' FROM trace_log WHERE query_id = 'enter' AND labels <> '{}'")
			.c_str(),
		"users#show");
}

/* If a key is set several times, the innermost label wins, however it was set. */
static void test_nesting(void **)
{
	queryprof::DynamicLabel outer({ { "at", "outer", 0, nullptr }, { "a", "1", 0, nullptr } });
	queryprof::DynamicLabel inner({ { "at", "inner", 0, nullptr }, { "b", "2", 0, nullptr } });
	const char *both = "{\"a\":\"1\",\"at\":\"inner\",\"b\":\"2\"}";

	in_query("run run", [&] { outer.apply([&] { inner.apply([] { burn(BURN_NS); }); }); });
	in_query("run enter", [&] {
		outer.apply([&] {
			queryprof::LabelScope scope(inner);
			burn(BURN_NS);
		});
	});
	in_query("enter run", [&] {
		queryprof::LabelScope scope(outer);
		inner.apply([] { burn(BURN_NS); });
	});
	in_query("left", [&] {
		queryprof::LabelScope scope(outer);
		inner.apply([] {
			uint64_t before = qp_labels_enter(NULL);
			qp_labels_leave(before);
		});
		burn(BURN_NS);
	});
	assert_true(labels_of("run run").find(both) != std::string::npos);
	assert_true(labels_of("run enter").find(both) != std::string::npos);
	assert_true(labels_of("enter run").find(both) != std::string::npos);
	assert_true(labels_of("left").find("{\"a\":\"1\",\"at\":\"outer\"}") != std::string::npos);
	assert_true(labels_of("left").find("inner") == std::string::npos);
}

static void test_returns(void **)
{
	queryprof::DynamicLabel label("key", "value");
	int number = 1;

	assert_int_equal(label.apply([] { return 42; }), 42);
	assert_ptr_equal(&label.apply([&]() -> int & { return number; }), &number);
	assert_int_equal(*label.apply([] { return std::make_unique<int>(7); }), 7);
	assert_string_equal(label.apply([] { return std::string(100, 'x'); }).c_str(),
	                    std::string(100, 'x').c_str());
	auto owned = std::make_unique<int>(9);
	assert_int_equal(label.apply([owned = std::move(owned)] { return *owned; }), 9);
	bool caught = false;
	try {
		label.apply([]() -> int { throw std::runtime_error("through"); });
	} catch (const std::runtime_error &error) {
		caught = std::string(error.what()) == "through";
	}
	assert_true(caught);
	queryprof::DynamicLabel moved(std::move(label));
	assert_int_equal(moved.apply([] { return 1; }), 1);
	assert_int_equal(label.apply([] { return 2; }), 2); /* it has no set, so this is a plain call */
}

static void test_refused(void **)
{
	const qp_label nameless = { "", "x", 0, nullptr };

	assert_null(qp_labels_new(NULL, 0));
	assert_true(strstr(qp_error(), "0 labels"));
	assert_null(qp_labels_new(&nameless, 1));
	assert_true(strstr(qp_error(), "label 0 has no key"));
	qp_labels_free(NULL);
	int called = 0;
	qp_labels_run(
		NULL, [](void *to) { ++*static_cast<int *>(to); }, &called);
	assert_int_equal(called, 1);
}

/* Equal sets are stored once, whatever the order of their labels. */
static void test_interned(void **)
{
	const qp_label one[] = { { "a", "1", 0, nullptr }, { "b", "2", 0, nullptr } };
	const qp_label other[] = { { "b", "2", 0, nullptr },
		                   { "a", "1", 0, nullptr },
		                   { "a", "3", 0, nullptr } };
	qp_label_set *first = qp_labels_new(one, 2), *second = qp_labels_new(other, 3);

	assert_non_null(first);
	assert_ptr_equal(first, second);
	qp_labels_free(first);
	qp_labels_free(second);
}

/* A thread inside a freed label keeps the labels, while other labels reuse the trampoline and the memory. */
static void test_freed_inside(void **)
{
	in_query("freed", [] {
		auto *label = new queryprof::DynamicLabel("freed", "yes");
		auto inside = [&] {
			delete label;
			for (int i = 0; i < 5000; i++)
				queryprof::DynamicLabel("other", i);
			burn(BURN_NS);
		};
		label->apply(inside);
	});
	in_query("entered", [] {
		const qp_label freed = { "freed", "entered", 0, nullptr };
		qp_label_set *set = qp_labels_new(&freed, 1);
		uint64_t before = qp_labels_enter(set);
		qp_labels_free(set);
		burn(BURN_NS);
		qp_labels_leave(before);
	});
	assert_true(labels_of("freed").find("{\"freed\":\"yes\"}") != std::string::npos);
	assert_true(labels_of("freed").find("other") == std::string::npos);
	assert_true(labels_of("entered").find("{\"freed\":\"entered\"}") != std::string::npos);
}

/* All trampolines are shown as the first one, so that stacks are equal. Their history distinguishes them. */
static void test_history(void **)
{
	{
		queryprof::DynamicLabel first("history", "first"), second("history", "second");
		auto work = [] { burn(BURN_NS); };

		in_query("history", [&] {
			first.apply(work);
			second.apply(work);
		});
	}
	assert_int_equal(
		ask_number("SELECT count(DISTINCT address) FROM label_history WHERE key = 'history'"), 2);
	assert_int_equal(
		ask_number("SELECT count(*) FROM label_history WHERE key = 'history' AND until_ns > from_ns"),
		2);
	/* Every sample with a label was taken while the label had its trampoline. */
	assert_int_equal(
		ask_number("SELECT count(*) FROM trace_log JOIN label_history AS h ON h.value = "
	                   "labels->>'history'"
	                   " WHERE key = 'history' AND timestamp_ns NOT BETWEEN from_ns AND until_ns"),
		0);
}

/* Labels set from C: on a connection, and on the process for connections and queries that begin later. */
static void test_set_label(void **)
{
	const char *spin_sql =
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) "
		"SELECT count(*) FROM n /*by='";
	sqlite3 *db, *later;
	auto run = [&](sqlite3 *on, const char *name) {
		std::string sql = spin_sql + std::string(name) + "'*/";
		assert_int_equal(sqlite3_exec(on, sql.c_str(), NULL, NULL, NULL), SQLITE_OK);
	};
	auto labels = [](const char *name) {
		return ask("SELECT group_concat(DISTINCT labels) FROM trace_log WHERE labels->>'by' = '" +
		           std::string(name) + "'");
	};

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(qp_attach(db), QP_OK);
	assert_int_equal(qp_set_label(db, "tenant", "acme"), QP_OK);
	run(db, "own");
	assert_int_equal(qp_set_label(db, "tenant", NULL), QP_OK);
	run(db, "gone");
	assert_int_equal(qp_set_label(NULL, "service", "blog"), QP_OK);
	assert_int_equal(sqlite3_open(":memory:", &later), SQLITE_OK);
	run(db, "older");
	run(later, "later");
	in_query("engine", [] { burn(BURN_NS); });
	assert_int_equal(qp_set_label(NULL, "service", NULL), QP_OK);
	assert_int_equal(qp_set_label(db, NULL, "x"), QP_INVALID);
	assert_int_equal(qp_set_label(db, "", "x"), QP_INVALID);
	sqlite3_close(later);
	sqlite3_close(db);
	assert_string_equal(labels("own").c_str(), "{\"by\":\"own\",\"tenant\":\"acme\"}");
	assert_string_equal(labels("gone").c_str(), "{\"by\":\"gone\"}");
	assert_string_equal(labels("older").c_str(), "{\"by\":\"older\"}");
	assert_string_equal(labels("later").c_str(), "{\"by\":\"later\",\"service\":\"blog\"}");
	assert_string_equal(labels_of("engine").c_str(), "{\"service\":\"blog\"}");
}

int main()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),    cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_returns),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_interned), cmocka_unit_test(test_freed_inside),
		cmocka_unit_test(test_history),  cmocka_unit_test(test_set_label),
	};

	return cmocka_run_group_tests_name("label_sets", tests, begin_file, end_file);
}
