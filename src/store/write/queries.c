/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/queries.h"

#include "collect/open_runs.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

#define QUERY_ROW_BYTES 200
#define QUERIES_KNOWN (1 << 15) /* and as many that came before those */

#define NAME(name, type, value) ", " #name
#define MARK(name, type, value) ", :" #name
#define SET(name, type, value) ", " #name " = excluded." #name

const struct query_writer query_writer_new = {
	.known = HASH_TABLE_OF(struct known_query, SIZE_MAX), /* queries_begin_batch() */
	.earlier = HASH_TABLE_OF(struct known_query, SIZE_MAX),
	.sql = {
		.find.sql = "SELECT id FROM queries WHERE query_id = :query_id AND process = :process",
		.find_own.sql = "SELECT id FROM queries WHERE process = :process AND session = :session"
		                " AND query_start_ns / 1000000 = :ms AND NOT finished",
		.add.sql = "INSERT INTO queries (id, query_id, process, first_ns, last_ns, session, batch) VALUES"
		           " (:id, :query_id, :process, 9223372036854775807, -9223372036854775808, :session, :batch)",
		.start.sql =
			"UPDATE queries SET initial = :initial, parent = :parent, statement = :statement,"
			" query_start_ns = :query_start_ns, thread_id = :thread_id, batch = :batch,"
			" program = coalesce(nullif(:program, 0), program) WHERE id = :id AND NOT finished",
		.running.sql = "UPDATE queries SET database = :database, library = :library,"
		               " query_id = coalesce(nullif(:query_id, ''), query_id),"
		               " statement = coalesce(nullif(:statement, 0), statement) WHERE id = :id",
		.end.sql =
			"INSERT INTO queries (id, query_id, process, first_ns, last_ns" QUERY_COLUMNS(NAME) ", finished)"
			" VALUES (:id, :query_id, :process, :first_ns, :last_ns" QUERY_COLUMNS(MARK) ", 1)"
			" ON CONFLICT (id) DO UPDATE SET"
			" query_id = excluded.query_id, first_ns = min(first_ns, excluded.first_ns),"
			" last_ns = max(last_ns, excluded.last_ns), finished = 1" QUERY_COLUMNS(SET),
		/* The record of the end has better values than the samples, if it arrives. */
		.range.sql =
			"UPDATE queries SET first_ns = min(first_ns, :first_ns), last_ns = max(last_ns, :last_ns),"
			" samples_cpu = samples_cpu + (NOT finished) * :samples_cpu,"
			" samples_real = samples_real + (NOT finished) * :samples_real,"
			" weight_cpu = weight_cpu + (NOT finished) * :weight_cpu,"
			" weight_real = weight_real + (NOT finished) * :weight_real,"
			" cpu_time_ns = cpu_time_ns + (NOT finished) * :cpu_time_ns, query_duration_ns ="
			" iif(finished OR NOT statement, query_duration_ns, max(last_ns, :last_ns) - query_start_ns),"
			/* the content between its calls, as last seen open */
			" execution_ns = iif(finished OR NOT statement, execution_ns, max(last_ns, :last_ns) -"
			" query_start_ns - coalesce(iif(:last_ns < last_ns, NULL, :outside_ns), query_duration_ns -"
			" execution_ns)),"
			" labels = iif(labels, labels, :labels), context = iif(context, context, :context)"
			" WHERE id = :id",
	},
};

void query_writer_free(struct query_writer *queries)
{
	hash_table_free(&queries->known);
	hash_table_free(&queries->earlier);
	vector_free(&queries->in_batch);
}

void query_writer_forget(struct query_writer *queries)
{
	hash_table_clear(&queries->known);
	hash_table_clear(&queries->earlier);
}

struct queries_left {
	struct writer *writer;
	struct hash_table table;
	int64_t removed; /* some rows up to this one */
};

/* A query that cannot be kept is looked up again. */
static void keep_query(void *context, void *entry)
{
	struct queries_left *left = context;
	const struct known_query *known = entry;
	struct known_query *kept = NULL;

	if (known->row > left->removed ||
	    writer_ask_sql(left->writer, "SELECT 1 FROM queries WHERE id = ?1", known->row, 0))
		kept = hash_table_add(&left->table, known->key);
	if (kept)
		*kept = *known;
}

/* Also frees the memory of removed ones, because a busy host may have run very many. */
static void forget_queries(struct writer *writer, struct hash_table *queries, int64_t removed)
{
	struct queries_left left = { writer, HASH_TABLE_OF(struct known_query, SIZE_MAX), removed };

	hash_table_each(queries, keep_query, &left);
	hash_table_free(queries);
	*queries = left.table;
}

void query_writer_forget_removed(struct writer *writer, int64_t removed)
{
	forget_queries(writer, &writer->queries->known, removed);
	forget_queries(writer, &writer->queries->earlier, removed);
}

/* The row of a query that one of its other threads, or an earlier connection to the file, may have made. Its
 * id is made from the key until the query's record brings its own, or until its process noticed that the user
 * set one. 0: none. */
static int64_t find_query(struct writer *writer, struct query_key key)
{
	int64_t process = intern_process(writer), row;
	struct prepared *find;
	char text[37];

	if (process < 0)
		return process;
	query_key_text(key, text);
	find = writer_bind(writer, &writer->queries->sql.find);
	bind_text(find, "query_id", text, 36);
	bind_number(find, "process", process);
	row = writer_number(writer, find);
	if (row || !writer->other || !open_runs_had_user_ids(writer->other->runs) || !query_key_session(key))
		return row;
	find = writer_bind(writer, &writer->queries->sql.find_own);
	bind_number(find, "process", process);
	bind_number(find, "session", query_key_session(key));
	bind_number(find, "ms", (int64_t)(key.hi >> 16));
	return writer_number(writer, find);
}

static struct hash query_hash(struct query_key key)
{
	return hash_words((uint64_t[]){ key.hi, key.lo }, 2);
}

struct known_query *intern_known_query(const struct writer *writer, struct query_key key)
{
	return hash_table_find(&writer->queries->known, query_hash(key));
}

/* SQLITE_OK or the error. */
static int add_span(struct writer *writer, struct query_key key, struct known_query *known, bool is_new)
{
	bool is_added =
		vector_push(&writer->queries->in_batch, (struct batch_query){ .key = key,
	                                                                      .rows.query = known->row,
	                                                                      .is_new = is_new,
	                                                                      .first_ns = INT64_MAX,
	                                                                      .last_ns = INT64_MIN });

	if (!is_added)
		return SQLITE_NOMEM;
	known->batch = writer->batch;
	known->entry = (uint32_t)writer->queries->in_batch.count - 1;
	return SQLITE_OK;
}

/* NULL: none. An earlier entry becomes one of the newest. */
static struct known_query *find_known(struct writer *writer, struct hash hash)
{
	struct known_query *known = hash_table_find(&writer->queries->known, hash);
	const struct known_query *earlier = known ? NULL : hash_table_find(&writer->queries->earlier, hash);

	if (earlier && (known = hash_table_add(&writer->queries->known, hash)))
		*known = *earlier;
	return known;
}

int64_t intern_query(struct writer *writer, struct query_key key, uint32_t *entry)
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
		if (is_new && writer->queries->newest == INT64_MAX)
			return -SQLITE_FULL;
		known = hash_table_add(&writer->queries->known, hash);
		if (!known)
			return -SQLITE_NOMEM;
		known->row = is_new ? ++writer->queries->newest : row;
		writer->bytes += is_new ? QUERY_ROW_BYTES : 0;
	}
	if (known->batch != writer->batch && (code = add_span(writer, key, known, is_new)))
		return -code;
	*entry = known->entry;
	return known->row;
}

/* Not while rows of a batch are not in the file yet. Only here can a query that the host has named be found,
 * and its spans arrive when their trace ends. */
void queries_begin_batch(struct query_writer *queries)
{
	struct hash_table earlier = queries->earlier;

	queries->in_batch.count = 0;
	queries->ended = 0;
	if (queries->known.count < QUERIES_KNOWN)
		return;
	hash_table_clear(&earlier);
	queries->earlier = queries->known;
	queries->known = earlier;
}

void queries_widen(struct query_writer *queries, uint32_t index, int64_t first_ns, int64_t last_ns)
{
	struct batch_query *entry;

	if (index >= queries->in_batch.count)
		return;
	entry = &queries->in_batch.items[index];
	if (first_ns < entry->first_ns)
		entry->first_ns = first_ns;
	if (last_ns > entry->last_ns)
		entry->last_ns = last_ns;
}

int64_t queries_find(struct writer *writer, struct query_key query, int64_t first_ns, int64_t last_ns)
{
	uint32_t entry;
	int64_t row;

	if (!query.hi && !query.lo)
		return 0;
	row = intern_query(writer, query, &entry);
	if (row > 0)
		queries_widen(writer->queries, entry, first_ns, last_ns);
	return row;
}
