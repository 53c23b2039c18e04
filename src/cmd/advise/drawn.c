/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/drawn.h"

#include <stdlib.h>

#include "base/text.h"

/* SplitMix64: the same values in each run. */
static uint64_t hash_of(uint64_t number)
{
	number += UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* A row's value. If the row is to be inserted, one of a column that must be unique becomes another. */
#define BY_ROWID                                                                                             \
	"SELECT %s FROM \"%w\" WHERE rowid >= (SELECT min(rowid) FROM \"%w\") + %lld %% (1 + (SELECT "       \
	"max(rowid) FROM "                                                                                   \
	"\"%w\") - (SELECT min(rowid) FROM \"%w\")) LIMIT 1"
#define BY_PLACE "SELECT %s FROM \"%w\" LIMIT 1 OFFSET %lld %% max(1, (SELECT count(*) FROM \"%w\"))"
#define IS_UNIQUE                                                                                            \
	"SELECT EXISTS (SELECT 1 FROM pragma_index_list(%Q) AS l, pragma_index_info(l.name) AS i "           \
	"WHERE l.\"unique\" AND i.name = %Q) OR EXISTS (SELECT 1 FROM pragma_table_info(%Q) WHERE name = "   \
	"%Q AND pk)"

static char *expression_of(struct connection *connection, const struct parameter *parameter, int set)
{
	const char *column = parameter->column;
	char *sql = sqlite3_mprintf(IS_UNIQUE, parameter->table, column, parameter->table, column),
	     *expression;

	if (sql && parameter->is_inserted && connection_number(connection, sql, 0))
		expression = sqlite3_mprintf("iif(typeof(\"%w\") = 'integer', (SELECT max(\"%w\") FROM "
		                             "\"%w\") + %d, \"%w\" || '~%d')",
		                             column, column, parameter->table, set + 1, column, set);
	else
		expression = sqlite3_mprintf("\"%w\"", column);
	sqlite3_free(sql);
	return expression;
}

static sqlite3_value *draw(struct connection *connection, const struct parameter *parameter, int set)
{
	char *expression = expression_of(connection, parameter, set);
	sqlite3_value *value = NULL;

	for (int way = 0; expression && !value && way < 2; way++) {
		const char *table = parameter->table;
		const long long number = (long long)(hash_of((uint64_t)set) >> 2);
		char *sql = way ? sqlite3_mprintf(BY_PLACE, expression, table, number, table)
		                : sqlite3_mprintf(BY_ROWID, expression, table, table, number, table, table);

		value = connection_value(connection, sql);
		sqlite3_free(sql);
	}
	sqlite3_free(expression);
	return value;
}

/* The name of the column for which the text has only a place. */
static void name_column(struct connection *connection, struct parameter *parameter)
{
	char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q) LIMIT 1 OFFSET %lld",
	                            parameter->table, (long long)parameter->number);
	sqlite3_value *name = connection_value(connection, sql);

	if (name)
		parameter->column = sqlite3_mprintf("%s", sqlite3_value_text(name));
	sqlite3_value_free(name);
	sqlite3_free(sql);
}

sqlite3_value **drawn_values(struct connection *connection, sqlite3_stmt *statement,
                             struct compared *compared, int sets, char **unknown)
{
	const size_t parameters = (size_t)sqlite3_bind_parameter_count(statement);
	sqlite3_value **values = NULL;

	if (!vector_reserve(&compared->parameters, parameters) ||
	    !vector_at(&compared->parameters, parameters - 1))
		return NULL;
	for (size_t p = 0; p < parameters; p++) {
		struct parameter *parameter = &compared->parameters.items[p];

		if (parameter->is_known && parameter->table && !parameter->column)
			name_column(connection, parameter);
		if (!parameter->is_known || (parameter->table && !parameter->column)) {
			*unknown =
				text_format("the value of parameter %zu is not known; record with --setting "
			                    "log_query_parameters=1",
			                    p + 1);
			return NULL;
		}
	}
	compared->parameters.count = parameters;
	values = calloc((size_t)sets * parameters, sizeof(*values));
	for (size_t i = 0; values && i < (size_t)sets * parameters; i++) {
		const struct parameter *parameter = &compared->parameters.items[i % parameters];
		char number[24];

		if (parameter->table) {
			values[i] = draw(connection, parameter, (int)(i / parameters));
			continue;
		}
		sqlite3_snprintf(sizeof(number), number, "SELECT %lld", (long long)parameter->number);
		values[i] = connection_value(connection, number);
	}
	return values;
}

void drawn_free(sqlite3_value **values, size_t count)
{
	for (size_t i = 0; values && i < count; i++)
		sqlite3_value_free(values[i]);
	free(values);
}
