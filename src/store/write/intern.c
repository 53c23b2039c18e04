/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated texts, stacks and names are stored once: look up what is known in memory, else in the file,
 * else add it. The tables in memory only save look-ups. They are keyed by what a
 * record says (addresses as they are in this process, kernel thread ids, query
 * keys), so that a sample whose parts are all known costs no SQL but its own row.
 */
#include "store/write/intern.h"

#include <stdio.h>
#include <string.h>

#include "base/task_file.h"
#include "query/normalize.h"
#include "store/write/labels.h"
#include "store/write/place.h"

#define QUERY_ROW_BYTES 200
#define QUERIES_KNOWN (1 << 15) /* and as many that came before those */

/* The row that an insert made. */
static int64_t insert_row(struct writer *writer, enum writer_statement which)
{
	int code = writer_run(writer, which);

	return code ? -code : sqlite3_last_insert_rowid(writer->database.db);
}

/* --- processes, threads, series ----------------------------------------------- */

static void bind_process(struct writer *writer, sqlite3_stmt *statement)
{
	writer_bind_text(statement, 1, writer->identity.hostname, SIZE_MAX);
	sqlite3_bind_int64(statement, 2, writer->identity.process_id);
	sqlite3_bind_int64(statement, 3, writer->identity.start_time_ns);
}

int64_t intern_process(struct writer *writer)
{
	if (writer->process)
		return writer->process;
	bind_process(writer, writer_statement(writer, WRITE_FIND_PROCESS));
	writer->process = writer_number(writer, WRITE_FIND_PROCESS);
	if (!writer->process) {
		sqlite3_stmt *add = writer_statement(writer, WRITE_PROCESS);

		bind_process(writer, add);
		writer_bind_text(add, 4, writer->identity.executable, SIZE_MAX);
		writer->process = insert_row(writer, WRITE_PROCESS);
	}
	if (writer->process < 0) {
		int64_t error = writer->process;

		writer->process = 0;
		return error;
	}
	return writer->process;
}

static struct hash thread_key(uint32_t thread_id)
{
	uint64_t word = thread_id;

	return hash_words(&word, 1);
}

/* The kernel's name of a thread whose own record did not arrive. */
static void read_thread_name(uint32_t thread_id, char *name, size_t size)
{
	task_file_read(thread_id, "comm", name, size);
	name[strcspn(name, "\n")] = '\0';
}

static struct known_thread *add_thread(struct writer *writer, uint32_t thread_id)
{
	return hash_table_add(&writer->threads, thread_key(thread_id));
}

void intern_thread_name(struct writer *writer, const struct thread_record *record)
{
	struct known_thread *thread = hash_table_find(&writer->threads, thread_key(record->thread_id));

	if (!thread)
		thread = add_thread(writer, record->thread_id);
	if (!thread)
		return;
	/* The id may have been another thread's before. */
	thread->row = 0;
	memcpy(thread->name, record->name, sizeof thread->name);
	thread->name[sizeof thread->name - 1] = '\0';
	writer->last.series = 0;
}

/* The row of a thread whose name is in the file, and nowhere else any more; 0: none. */
static int64_t find_newest_thread(struct writer *writer, int64_t process, uint32_t thread_id)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_NEWEST_THREAD);

	sqlite3_bind_int64(statement, 1, process);
	sqlite3_bind_int64(statement, 2, thread_id);
	return writer_number(writer, WRITE_NEWEST_THREAD);
}

int64_t intern_thread(struct writer *writer, uint32_t thread_id)
{
	struct known_thread *thread = hash_table_find(&writer->threads, thread_key(thread_id));
	struct known_thread unknown = { .row = 0 };
	int64_t process = intern_process(writer), row;
	sqlite3_stmt *statement;

	if (process < 0)
		return process;
	if (!thread) {
		thread = add_thread(writer, thread_id);
		if (!thread)
			thread = &unknown;
		if (writer->other)
			thread->row = find_newest_thread(writer, process, thread_id);
		else
			read_thread_name(thread_id, thread->name, sizeof thread->name);
	}
	if (thread->row)
		return thread->row;
	for (enum writer_statement which = WRITE_FIND_THREAD;; which = WRITE_THREAD) {
		statement = writer_statement(writer, which);
		sqlite3_bind_int64(statement, 1, process);
		sqlite3_bind_int64(statement, 2, thread_id);
		writer_bind_text(statement, 3, thread->name, SIZE_MAX);
		row = which == WRITE_FIND_THREAD ? writer_number(writer, which) : insert_row(writer, which);
		if (row || which == WRITE_THREAD)
			break;
	}
	if (row > 0)
		thread->row = row;
	return row;
}

static int touch_series(struct writer *writer, struct known_series *series)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_SERIES_EPOCH);

	sqlite3_bind_int64(statement, 1, writer->epoch);
	sqlite3_bind_int64(statement, 2, series->row);
	series->epoch = writer->epoch;
	return writer_run(writer, WRITE_SERIES_EPOCH);
}

/* A number that this build has no type for gets a name and a unit that no build has. */
static int64_t find_series(struct writer *writer, int64_t thread, unsigned number, uint64_t period_ns,
                           uint32_t stretch, struct known_series *series)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_FIND_SERIES);
	const struct sample_type *known = sample_type_at(number);
	char unknown[16];
	const char *type = known ? known->name : unknown;

	snprintf(unknown, sizeof unknown, "Type%u", number);
	sqlite3_bind_int64(statement, 1, thread);
	writer_bind_text(statement, 2, type, SIZE_MAX);
	sqlite3_bind_int64(statement, 3, (int64_t)period_ns);
	sqlite3_bind_int64(statement, 4, stretch);
	series->row = writer_number(writer, WRITE_FIND_SERIES);
	if (series->row)
		return series->row;
	statement = writer_statement(writer, WRITE_SERIES);
	sqlite3_bind_int64(statement, 1, thread);
	writer_bind_text(statement, 2, type, SIZE_MAX);
	sqlite3_bind_int64(statement, 3, (int64_t)period_ns);
	sqlite3_bind_int64(statement, 4, writer->epoch);
	writer_bind_text(statement, 5, known ? known->unit : UNIT_UNKNOWN, SIZE_MAX);
	sqlite3_bind_int64(statement, 6, stretch);
	series->row = insert_row(writer, WRITE_SERIES);
	series->epoch = writer->epoch;
	return series->row;
}

int64_t intern_series(struct writer *writer, const struct sample_record *sample, uint32_t stretch)
{
	uint8_t type = sample->trace_type;
	struct known_series *known, fresh = { .epoch = 0 };
	int64_t thread;
	struct hash key;
	int code;

	if (writer->last.series && writer->last.thread_id == sample->thread_id &&
	    writer->last.trace_type == type && writer->last.period_ns == sample->period_ns &&
	    writer->last.stretch == stretch)
		return writer->last.series;
	thread = intern_thread(writer, sample->thread_id);
	if (thread < 0)
		return thread;
	key = hash_words((uint64_t[]){ (uint64_t)thread, type, sample->period_ns, stretch }, 4);
	known = hash_table_find(&writer->series, key);
	if (!known) {
		if (find_series(writer, thread, type, sample->period_ns, stretch, &fresh) < 0)
			return fresh.row;
		known = hash_table_add(&writer->series, key);
		if (known) {
			known->row = fresh.row;
			known->epoch = fresh.epoch;
		} else {
			known = &fresh;
		}
	}
	if (known->epoch != writer->epoch && (code = touch_series(writer, known)))
		return -code;
	writer->last.thread_id = sample->thread_id;
	writer->last.trace_type = type;
	writer->last.period_ns = sample->period_ns;
	writer->last.stretch = stretch;
	writer->last.series = known->row;
	return known->row;
}

/* --- stacks ---------------------------------------------------------------------- */

static char *write_number(char *at, uint64_t number)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	return at;
}

/* The trace as the file has it: JSON text in the file's address space. */
static int write_trace(struct writer *writer, const struct sample_record *sample, size_t depth, size_t *size)
{
	char *at = writer->trace_text;

	*at++ = '[';
	for (size_t i = 0; i < depth; i++) {
		uint64_t address;
		int code = place_address(writer, sample->trace[i], sample->generation, &address);

		if (code)
			return code;
		if (i)
			*at++ = ',';
		at = write_number(at, address);
	}
	*at++ = ']';
	*size = (size_t)(at - writer->trace_text);
	return SQLITE_OK;
}

#define STACK_BYTES 500 /* of an ordinary one */

static int touch_stack(struct writer *writer, int64_t row)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_STACK_EPOCH);

	sqlite3_bind_int64(statement, 1, writer->epoch);
	sqlite3_bind_int64(statement, 2, row);
	writer->rewritten += STACK_BYTES;
	return writer_run(writer, WRITE_STACK_EPOCH);
}

/* Its row after a look into the file; its epoch is the present one then. */
static int64_t find_stack(struct writer *writer, const struct sample_record *sample, size_t depth)
{
	sqlite3_stmt *statement;
	int64_t hash, row;
	size_t size;
	int code = write_trace(writer, sample, depth, &size);

	if (code)
		return -code;
	hash = (int64_t)hash_bytes(writer->trace_text, size).first;
	statement = writer_statement(writer, WRITE_FIND_STACK);
	sqlite3_bind_int64(statement, 1, hash);
	writer_bind_text(statement, 2, writer->trace_text, size);
	row = writer_number(writer, WRITE_FIND_STACK);
	if (row < 0)
		return row;
	if (row) {
		code = touch_stack(writer, row);
		return code ? -code : row;
	}
	statement = writer_statement(writer, WRITE_STACK);
	sqlite3_bind_int64(statement, 1, hash);
	sqlite3_bind_int64(statement, 2, writer->epoch);
	writer_bind_text(statement, 3, writer->trace_text, size);
	writer->bytes += size + 40;
	return insert_row(writer, WRITE_STACK);
}

int64_t intern_stack(struct writer *writer, const struct sample_record *sample)
{
	size_t depth = sample->depth < TRACE_MAX_FRAMES ? sample->depth : TRACE_MAX_FRAMES;
	struct hash key = hash_words(sample->trace, depth);
	struct known_stack *known = hash_table_find(&writer->stacks, key);
	int64_t row;
	int code;

	if (known && known->row && known->generation == sample->generation) {
		if (known->epoch != writer->epoch) {
			code = touch_stack(writer, known->row);
			if (code)
				return -code;
			known->epoch = writer->epoch;
		}
		return known->row;
	}
	/* New, or the code map has changed since: the same addresses may now be
	 * another module's. */
	row = find_stack(writer, sample, depth);
	if (row < 0)
		return row;
	if (!known)
		known = hash_table_add(&writer->stacks, key);
	if (known) {
		known->row = row;
		known->epoch = writer->epoch;
		known->generation = sample->generation;
	}
	return row;
}

/* --- statements and queries ---------------------------------------------------- */

int64_t intern_statement(struct writer *writer, const char *text, size_t size, bool is_cut, bool stays,
                         uint64_t shape)
{
	struct hash key = hash_bytes(text, size);
	struct known_text *known;
	sqlite3_stmt *statement;
	int64_t row;

	key.second ^= (uint64_t)is_cut << 1;
	known = hash_table_find(&writer->texts, key);
	if (known)
		return known->row;
	statement = writer_statement(writer, WRITE_FIND_STATEMENT);
	sqlite3_bind_int64(statement, 1, (int64_t)key.first);
	writer_bind_text(statement, 2, text, size);
	sqlite3_bind_int(statement, 3, is_cut);
	row = writer_number(writer, WRITE_FIND_STATEMENT);
	if (!row) {
		int64_t labels = labels_of_comments(writer, text, size);

		if (labels < 0)
			return labels;
		statement = writer_statement(writer, WRITE_STATEMENT);
		sqlite3_bind_int64(statement, 5, labels);
		sqlite3_bind_int64(statement, 1, (int64_t)key.first);
		sqlite3_bind_int64(statement, 2, (int64_t)(shape ? shape : normalize_hash(text, size)));
		sqlite3_bind_int(statement, 3, is_cut);
		writer_bind_text(statement, 4, text, size);
		row = insert_row(writer, WRITE_STATEMENT);
		writer->bytes += size + 40;
	}
	if (row > 0 && stays && (known = hash_table_add(&writer->texts, key)))
		known->row = row;
	return row;
}

int intern_remove_unused(struct writer *writer, int64_t statement)
{
	sqlite3_bind_int64(writer_statement(writer, WRITE_UNUSED_STATEMENT), 1, statement);
	return writer_run(writer, WRITE_UNUSED_STATEMENT);
}

int64_t intern_library(struct writer *writer, const char *text, size_t size)
{
	struct hash key = hash_bytes(text, size);
	struct known_text *known = hash_table_find(&writer->libraries, key);
	const char *space = size ? memchr(text, ' ', size) : NULL;
	size_t version = space ? (size_t)(space - text) : 0;
	int64_t row = 0;

	if (known || !space)
		return known ? known->row : 0;
	for (int which = WRITE_FIND_LIBRARY; which <= WRITE_LIBRARY && !row; which++) {
		sqlite3_stmt *statement = writer_statement(writer, which);

		writer_bind_text(statement, 1, space + 1, size - version - 1);
		writer_bind_text(statement, 2, text, version);
		row = which == WRITE_LIBRARY ? insert_row(writer, which) : writer_number(writer, which);
	}
	if (row > 0 && (known = hash_table_add(&writer->libraries, key)))
		known->row = row;
	return row;
}

/* The row of a query that another thread of it, or an earlier connection to the file, may have made:
 * it has the id that the key makes until the query's record brings its own. 0: there is none. */
static int64_t find_query(struct writer *writer, struct query_key key)
{
	sqlite3_stmt *statement = writer_statement(writer, WRITE_FIND_QUERY);
	int64_t process = intern_process(writer);
	char text[37];

	if (process < 0)
		return process;
	query_key_text(key, text);
	writer_bind_text(statement, 1, text, 36);
	sqlite3_bind_int64(statement, 2, process);
	return writer_number(writer, WRITE_FIND_QUERY);
}

static struct hash query_hash(struct query_key key)
{
	return hash_words((uint64_t[]){ key.hi, key.lo }, 2);
}

struct known_query *intern_known_query(const struct writer *writer, struct query_key key)
{
	return hash_table_find(&writer->queries, query_hash(key));
}

/* SQLITE_OK or the error. */
static int add_span(struct writer *writer, struct query_key key, struct known_query *known, bool is_new)
{
	bool is_added = vector_push(&writer->spans, (struct query_span){ .key = key,
	                                                                 .rows.query = known->row,
	                                                                 .is_new = is_new,
	                                                                 .first_ns = INT64_MAX,
	                                                                 .last_ns = INT64_MIN });

	if (!is_added)
		return SQLITE_NOMEM;
	known->batch = writer->batch;
	known->span = (uint32_t)writer->spans.count - 1;
	return SQLITE_OK;
}

/* NULL: there is none. One of the earlier ones is one of the newest from now on. */
static struct known_query *find_known(struct writer *writer, struct hash hash)
{
	struct known_query *known = hash_table_find(&writer->queries, hash);
	const struct known_query *earlier = known ? NULL : hash_table_find(&writer->earlier_queries, hash);

	if (earlier && (known = hash_table_add(&writer->queries, hash)))
		*known = *earlier;
	return known;
}

int64_t intern_query(struct writer *writer, struct query_key key, uint32_t *span)
{
	struct hash hash = query_hash(key);
	struct known_query *known = find_known(writer, hash);
	bool is_new = false;
	int code;

	if (!known) {
		int64_t row = find_query(writer, key);

		if (row < 0)
			return row;
		is_new = !row;
		if (is_new && writer->newest_query == INT64_MAX)
			return -SQLITE_FULL;
		known = hash_table_add(&writer->queries, hash);
		if (!known)
			return -SQLITE_NOMEM;
		known->row = is_new ? ++writer->newest_query : row;
		writer->bytes += is_new ? QUERY_ROW_BYTES : 0;
	}
	if (known->batch != writer->batch && (code = add_span(writer, key, known, is_new)))
		return -code;
	*span = known->span;
	return known->row;
}

/* Not while a batch has rows that are not in the file yet. A query that the host has named can be found
 * here only, and its spans come when their trace ends. */
void intern_begin_batch(struct writer *writer)
{
	struct hash_table earlier = writer->earlier_queries;

	if (writer->queries.count < QUERIES_KNOWN)
		return;
	hash_table_clear(&earlier);
	writer->earlier_queries = writer->queries;
	writer->queries = earlier;
}
