/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/call_stacks.h"
#include "store/write/lifecycle.h"

#include <stdlib.h>
#include <string.h>

#include "queryprof.h"
#include "store/write/checkpoints.h"
#include "store/write/labels.h"
#include "store/write/lock_waits.h"
#include "store/write/losses.h"
#include "store/write/connections.h"
#include "store/write/page_sums.h"
#include "store/write/space.h"
#include "store/write/bytecode.h"
#include "store/write/queries.h"
#include "store/write/sample_rows.h"
#include "store/write/foreign_spans.h"
#include "store/write/span_rows.h"
#include "store/write/span_sites.h"
#include "store/write/spans.h"
#include "store/write/stacks.h"
#include "store/write/statements.h"
#include "store/write/texts.h"
#include "store/write/threads.h"

/* Each part, its name in struct writer and its type. */
#define PARTS(PART)                                                                                          \
	PART(threads, thread_writer)                                                                         \
	PART(stacks, stack_writer)                                                                           \
	PART(modules, module_writer)                                                                         \
	PART(call_stacks, call_stack_writer)                                                                 \
	PART(texts, text_writer)                                                                             \
	PART(queries, query_writer)                                                                          \
	PART(samples, sample_writer)                                                                         \
	PART(labels, label_writer)                                                                           \
	PART(spans, span_writer)                                                                             \
	PART(span_rows, span_row_writer)                                                                     \
	PART(foreign_spans, foreign_span_writer)                                                             \
	PART(span_sites, span_site_writer)                                                                   \
	PART(counters, counter_writer)                                                                       \
	PART(locks, lock_writer)                                                                             \
	PART(checkpoints, checkpoint_writer)                                                                 \
	PART(connections, connection_writer)                                                                 \
	PART(page_sums, page_sum_writer)                                                                     \
	PART(bytecode, bytecode_writer)                                                                      \
	PART(losses, loss_writer)

#define DECLARE_PART(name, type) struct type name;
struct writer_parts {
	PARTS(DECLARE_PART)
};

/* --- memory ------------------------------------------------------------------------- */

#define POINT_TO_PART(name, type) writer->name = &writer->parts->name;
#define INIT_PART(name, type) *writer->name = type##_new;

bool writer_init(struct writer *writer, bool (*give_up)(void *context), void *context)
{
	*writer = (struct writer){ .database = DATABASE_CLOSED, .contention = { give_up, context } };
	writer->parts = calloc(1, sizeof(*writer->parts));
	if (!writer->parts)
		return false;
	PARTS(POINT_TO_PART)
	writer_init_transaction(writer);
	PARTS(INIT_PART)
	if (!sample_writer_reserve(writer->samples)) {
		writer_free(writer);
		return false;
	}
	writer_reset_identity(writer);
	return true;
}

void writer_free(struct writer *writer)
{
	vector_free(&writer->kept);
	free(writer->failure);
	writer->failure = NULL;
	if (!writer->parts)
		return;
	hash_table_free(&writer->threads->known);
	hash_table_free(&writer->threads->series);
	hash_table_free(&writer->stacks->known);
	hash_table_free(&writer->modules->known);
	hash_table_free(&writer->call_stacks->known);
	hash_table_free(&writer->texts->known);
	hash_table_free(&writer->texts->libraries);
	query_writer_free(writer->queries);
	sample_writer_free(writer->samples);
	label_writer_free(writer->labels);
	span_writer_free(writer->spans);
	span_row_writer_free(writer->span_rows);
	hash_table_free(&writer->foreign_spans->known);
	span_site_writer_free(writer->span_sites);
	free(writer->parts);
	writer->parts = NULL;
}

/* --- what they know ------------------------------------------------------------------ */

void writer_reset_identity(struct writer *writer)
{
	writer->identity = *writer_identity_here();
	hash_table_clear(&writer->threads->known);
	writer_forget(writer);
}

void writer_forget_before(struct writer *writer, int64_t epoch, int64_t query)
{
	thread_writer_forget(writer->threads);
	stack_writer_forget(writer->stacks, epoch);
	hash_table_clear(&writer->texts->known);
	label_writer_forget(writer->labels);
	if (epoch) { /* an epoch has ended; else these rows stay */
		hash_table_clear(&writer->call_stacks->known);
		span_site_writer_forget_statements(writer->span_sites);
	}
	query_writer_forget_removed(writer, query);
	writer->counters->rows = -1;
}

void writer_forget(struct writer *writer)
{
	query_writer_forget(writer->queries);
	writer_forget_before(writer, INT64_MAX, INT64_MAX);
	hash_table_clear(&writer->texts->libraries);
	hash_table_clear(&writer->call_stacks->known);
	hash_table_clear(&writer->modules->known);
	span_site_writer_forget(writer->span_sites);
	writer->removals = -1;
}

/* --- the file ------------------------------------------------------------------------ */

#define LIST_PART(name, type) PREPARED_SET(writer->name),

void writer_sets(struct writer *writer, struct prepared_set sets[WRITER_SETS])
{
	const struct prepared_set all[WRITER_SETS] = { PREPARED_SET(writer), PARTS(LIST_PART) };

	memcpy(sets, all, sizeof(all));
}

static void each_prepared(struct writer *writer, void (*each)(struct prepared *prepared))
{
	struct prepared_set sets[WRITER_SETS];

	if (!writer->parts) /* it was never opened */
		return;
	writer_sets(writer, sets);
	for (size_t i = 0; i < WRITER_SETS; i++)
		for (size_t j = 0; j < sets[i].count; j++)
			each(&sets[i].first[j]);
}

static void forget_statement(struct prepared *prepared)
{
	prepared->statement = NULL;
}

void writer_forget_statements(struct writer *writer)
{
	each_prepared(writer, forget_statement);
	writer->kept.count = 0;
}

static void use_connection(struct writer *writer)
{
	made_table_add(writer->database.db, &span_rows_to_write,
	               writer); /* without it, the statements fail */
	made_table_add(writer->database.db, &samples_to_write, writer);
	writer_wait_when_busy(writer);
}

int writer_open(struct writer *writer, const char *path, const struct database_limits *limits, char **error)
{
	struct database_limits patient = *limits;
	int code;

	patient.contention = writer->contention;
	code = database_open(&writer->database, path, &patient, error);
	writer->path = path;
	if (!code)
		use_connection(writer);
	return code;
}

void writer_adopt(struct writer *writer, const char *path, struct database database)
{
	writer->database = database;
	writer->path = path;
	use_connection(writer);
}

static void finalize(struct prepared *prepared)
{
	sqlite3_finalize(prepared->statement);
}

static void finalize_all(struct writer *writer)
{
	each_prepared(writer, finalize);
	for (size_t i = 0; i < writer->kept.count; i++)
		sqlite3_finalize(writer->kept.items[i].statement);
	writer_forget_statements(writer);
}

void writer_close(struct writer *writer, bool last)
{
	finalize_all(writer);
	database_close(&writer->database, last);
}

struct database writer_detach(struct writer *writer)
{
	struct database database = writer->database;

	finalize_all(writer);
	/* These refer to the writer until another one adopts the connection. */
	made_table_add(database.db, &span_rows_to_write, NULL);
	made_table_add(database.db, &samples_to_write, NULL);
	sqlite3_busy_handler(database.db, NULL, NULL);
	writer->database = DATABASE_CLOSED;
	return database;
}
