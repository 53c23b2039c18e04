/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/way.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/ui/complain.h"

const char way_pragmas[] =
	"automatic_index, cache_size, cache_spill, foreign_keys, mmap_size, recursive_triggers, "
	"reverse_unordered_selects or temp_store";

bool way_may_set(const char *pragma)
{
	const size_t name = strcspn(pragma, "="), value = pragma[name] ? strlen(pragma + name + 1) : 0;
	const char *at = name ? way_pragmas : NULL;

	if (!value || strspn(pragma, "abcdefghijklmnopqrstuvwxyz_") != name ||
	    strspn(pragma + name + 1, "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") !=
	            value)
		return false;
	while (at && (strncmp(at, pragma, name) != 0 || !strchr(", ", at[name])))
		if ((at = strchr(at, ' ')))
			at++;
	return at && strncmp("or", pragma, name) != 0;
}

bool way_open(const struct way *way, struct connection *connection, const char *given, const char *copy)
{
	char *sql = way->pragma ? text_format("PRAGMA %s", way->pragma) : NULL;
	bool fine = connection_open(connection, "analyze", given, copy);

	if (fine && sql && connection_run(connection, sql) != SQLITE_OK) {
		complain("analyze: --pragma %s: %s", way->pragma, sqlite3_errmsg(connection->db));
		connection_close(connection);
		fine = false;
	}
	free(sql);
	return fine;
}

/* --- values ---------------------------------------------------------------------------------------- */

/* A whole number, another number, NULL, a text in quotes, or else a text. */
static void bind_value(sqlite3_stmt *statement, int number, const char *value)
{
	const size_t size = strlen(value);
	char *end;

	errno = 0;
	const long long whole = strtoll(value, &end, 10);
	if (size && !*end && !errno && !strchr(" \t\n", *value)) {
		sqlite3_bind_int64(statement, number, whole);
		return;
	}
	const double real = strtod(value, &end);
	if (size && !*end && strspn(value, "+-.0123456789eE") == size)
		sqlite3_bind_double(statement, number, real);
	else if (!sqlite3_stricmp(value, "NULL"))
		sqlite3_bind_null(statement, number);
	else if (size >= 2 && value[0] == '\'' && value[size - 1] == '\'')
		sqlite3_bind_text(statement, number, value + 1, (int)size - 2, SQLITE_TRANSIENT);
	else
		sqlite3_bind_text(statement, number, value, (int)size, SQLITE_TRANSIENT);
}

/* The number of the parameter that the value names, 0 if it names none. *value: the text after the name. */
static int find_named(sqlite3_stmt *statement, const char **value)
{
	static const char *const signs[] = { ":", "@", "$", "?", "" };
	const char *equal = strchr(*value, '=');
	int number = 0;

	for (size_t i = 0; equal && !number && i < sizeof(signs) / sizeof(*signs); i++) {
		char *name = text_format("%s%.*s", signs[i], (int)(equal - *value), *value);

		number = name ? sqlite3_bind_parameter_index(statement, name) : 0;
		free(name);
	}
	if (number)
		*value = equal + 1;
	return number;
}

/* Values without a name belong to the parameters in their order, from the first on. */
static bool bind_values(const struct way *way, sqlite3_stmt *statement, char *error, size_t size)
{
	const int count = sqlite3_bind_parameter_count(statement);
	bool *is_bound = calloc((size_t)count + 1, sizeof(*is_bound));
	int next = 1;
	bool fine = is_bound;

	for (size_t i = 0; fine && i < way->values_count; i++) {
		const char *value = way->values[i];
		int number = find_named(statement, &value);

		number = number ? number : next++;
		if (number > count) {
			snprintf(error, size, "--param %.60s: the statement has %d parameter%s",
			         way->values[i], count, count == 1 ? "" : "s");
			fine = false;
			break;
		}
		is_bound[number] = true;
		bind_value(statement, number, value);
	}
	for (int i = 1; fine && i <= count; i++)
		if (!is_bound[i]) {
			const char *name = sqlite3_bind_parameter_name(statement, i);

			snprintf(error, size, "parameter %d (%.40s) has no value: --param %sVALUE", i,
			         name ? name : "?", name && name[0] != '?' ? "NAME=" : "");
			fine = false;
		}
	free(is_bound);
	return fine;
}

/* `statement` is the first statement of the text; NULL: the text has none. */
static bool is_alone(const char *text, sqlite3_stmt *statement, char *error, size_t size)
{
	const bool is = statement && !*text_skip_comments(text + strlen(sqlite3_sql(statement)));

	if (!is)
		snprintf(error, size, "%.60s%s: expected one statement", text,
		         strlen(text) > 60 ? "..." : "");
	return is;
}

sqlite3_stmt *way_prepare(const struct way *way, struct connection *connection)
{
	char *error = connection->error;
	const size_t size = sizeof(connection->error);
	sqlite3_stmt *statement;

	*error = 0;
	if (!connection_can_run(way->sql)) {
		snprintf(error, size,
		         "%.60s%s: expected SELECT, VALUES, WITH, INSERT, REPLACE, UPDATE or DELETE",
		         way->sql, strlen(way->sql) > 60 ? "..." : "");
		return NULL;
	}
	statement = connection_prepare(connection, way->sql);
	if (!*error && is_alone(way->sql, statement, error, size) && bind_values(way, statement, error, size))
		return statement;
	sqlite3_finalize(statement);
	return NULL;
}
