/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL statements that stay prepared. A part of the writer has a struct of them, whose members are all
 * struct prepared.
 *
 * Parameters have names and are bound in the order in which the SQL first names them:
 *
 *	bind = writer_bind(writer, &part->sql.add_thread);
 *	bind_number(bind, "process", process);
 *	bind_number(bind, "thread_id", thread_id);
 *	code = writer_run(writer, bind);
 *
 * A build with assertions compares each name with SQLite's, and the test store_prepared the names with the
 * columns that an INSERT lists. So no look-up by name is left for each row.
 */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct prepared {
	const char *sql;
	sqlite3_stmt *statement; /* NULL: not used yet, or it cannot be prepared */
	int bound;               /* parameters that have a value */
};

/* The statements of a part. */
struct prepared_set {
	struct prepared *first;
	size_t count;
};

#define PREPARED_SET(part) ((struct prepared_set){ (struct prepared *)&(part)->sql, PREPARED_COUNT(part) })
#define PREPARED_COUNT(part) (sizeof(part)->sql / sizeof(struct prepared))

#ifndef NDEBUG
/* Aborts if the parameter that is bound last has another name. */
void prepared_check_name(const struct prepared *prepared, const char *name);

/* Aborts if a parameter has no value. */
void prepared_check_all(const struct prepared *prepared);
#else
static inline void prepared_check_name(const struct prepared *prepared, const char *name)
{
	(void)prepared, (void)name;
}

static inline void prepared_check_all(const struct prepared *prepared)
{
	(void)prepared;
}
#endif

/* The number of the next parameter. */
static inline int prepared_next(struct prepared *prepared, const char *name)
{
	prepared->bound++;
	prepared_check_name(prepared, name);
	return prepared->bound;
}

static inline void bind_number(struct prepared *prepared, const char *name, int64_t number)
{
	sqlite3_bind_int64(prepared->statement, prepared_next(prepared, name), number);
}

static inline void bind_real(struct prepared *prepared, const char *name, double number)
{
	sqlite3_bind_double(prepared->statement, prepared_next(prepared, name), number);
}

static inline void bind_null(struct prepared *prepared, const char *name)
{
	sqlite3_bind_null(prepared->statement, prepared_next(prepared, name));
}

/* SIZE_MAX: up to the zero byte. The text must stay until the statement has run. */
static inline void bind_text(struct prepared *prepared, const char *name, const char *text, size_t size)
{
	sqlite3_bind_text(prepared->statement, prepared_next(prepared, name), text,
	                  size == SIZE_MAX ? -1 : (int)size, SQLITE_STATIC);
}
