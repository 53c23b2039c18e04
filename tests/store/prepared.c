/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each statement of the writer can be prepared, and its parameters have names. In an INSERT, each parameter
 * has its column's name. A build with assertions compares these names with the names that the code binds
 * (store/write/prepared.h), in all tests.
 */
#include "alone.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

typedef VECTOR(char *) list;

/* Splits the list in the parentheses at `at`; returns the place of its end. */
static const char *split(const char *at, list *items)
{
	const char *item = at + 1;
	int depth = 0;

	for (;; at++) {
		depth += *at == '(';
		depth -= *at == ')';
		if ((*at == ',' && depth == 1) || depth == 0) {
			while (*item == ' ')
				item++;
			assert_true(vector_push(items, strndup(item, (size_t)(at - item))));
			item = at + 1;
		}
		if (depth == 0)
			return at;
	}
}

static void free_items(list *items)
{
	for (size_t i = 0; i < items->count; i++)
		free(items->items[i]);
	vector_free(items);
}

/* A value that is only a parameter has the column's name; other values are expressions. */
static void compare_columns(const char *sql)
{
	list columns = { 0 }, values = { 0 };
	const char *into = strstr(sql, "INTO "), *at;

	if (!into || !(at = strchr(into, '(')))
		return;
	at = split(at, &columns) + 1;
	if (strncmp(at, " VALUES (", 9) == 0) {
		split(at + 8, &values);
		if (columns.count != values.count)
			fail_msg("%zu columns, %zu values: %s", columns.count, values.count, sql);
		for (size_t i = 0; i < columns.count; i++)
			if (values.items[i][0] == ':' && !strpbrk(values.items[i], " +") &&
			    strcmp(values.items[i] + 1, columns.items[i]))
				fail_msg("%s is stored in %s: %s", values.items[i], columns.items[i], sql);
	}
	free_items(&columns);
	free_items(&values);
}

static size_t inserts, statements;

static void check(struct prepared *prepared)
{
	writer_bind(&writer, prepared);
	if (!prepared->statement)
		fail_msg("%s: %s", sqlite3_errmsg(writer.database.db), prepared->sql);
	for (int i = 1; i <= sqlite3_bind_parameter_count(prepared->statement); i++) {
		const char *name = sqlite3_bind_parameter_name(prepared->statement, i);

		if (!name || name[0] != ':')
			fail_msg("parameter %d has no name: %s", i, prepared->sql);
	}
	compare_columns(prepared->sql);
	inserts += strncmp(prepared->sql, "INSERT", 6) == 0;
	statements++;
}

static void parameters_are_named_like_their_columns(void **state)
{
	struct prepared_set sets[WRITER_SETS];

	(void)state;
	writer_sets(&writer, sets);
	for (size_t i = 0; i < WRITER_SETS; i++) {
		assert_true(sets[i].count > 0);
		for (size_t j = 0; j < sets[i].count; j++)
			check(&sets[i].first[j]);
	}
	assert_true(inserts >= 25);
	assert_true(statements >= 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parameters_are_named_like_their_columns, begin_alone,
		                                end_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
