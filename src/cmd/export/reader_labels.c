/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/reader_labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/file/run_sql.h"
#include "cmd/line/command.h"
#include "label/pairs.h"
#include "sql_export_label_sets.h"
#include "sql_export_link.h"
#include "sql_export_links.h"
#include "sql_export_query.h"
#include "sql_export_statement.h"
#include "sql_export_thread.h"

#define LINK_SIZE (32 + 16) /* see export_labels */

/* An item's key, and the end of its run. */
struct entry {
	struct hash key;
	int64_t last_ns;
	uint32_t number;
};

/* The part of labels that all samples of a query share. */
struct live_query {
	uint32_t number;
	const char *database;
	char *query_id;
	struct reader_statement statement;
};

#define ITEMS 256 /* per block */

static void *item_at(const struct reader_live *live, uint32_t number)
{
	return live->blocks.items[number / ITEMS] + number % ITEMS * live->size;
}

/* NULL: none. */
static void *find_live(const struct reader_live *live, struct hash key)
{
	const struct entry *entry = hash_table_find(&live->table, key);

	return entry ? item_at(live, entry->number) : NULL;
}

/* A new item: zeroed, or with the values of a dropped item. NULL after a complaint. */
static void *add_live(struct reader_live *live, struct hash key, int64_t last_ns, uint32_t *number)
{
	struct entry *entry = hash_table_add(&live->table, key);
	char *block = NULL;

	if (entry && !live->free.count && live->next == live->blocks.count * ITEMS &&
	    (!(block = calloc(ITEMS, live->size)) || !vector_push(&live->blocks, block))) {
		free(block);
		entry = NULL;
	}
	if (!entry) {
		complain("out of memory");
		return NULL;
	}
	entry->last_ns = last_ns;
	entry->number = *number = live->free.count ? live->free.items[--live->free.count] : live->next++;
	return item_at(live, *number);
}

/* NULL: no memory. */
static const char *keep_pairs(struct names *names, struct label_pairs *pairs)
{
	char *text = label_pairs_text(pairs);
	const char *kept = text ? names_keep(names, text) : NULL;

	free(text);
	return kept;
}

/* The value of the label with that key; "": the key is missing. NULL: no memory. */
static const char *find_root(struct names *names, const struct label_pairs *pairs, const char *key)
{
	const struct label_pair *pair = key ? label_pairs_find(pairs, key) : NULL;
	const char *kept;
	char *text;

	if (!key || pair)
		return key ? names_keep(names, pair->text) : "";
	text = text_format("(no %s)", key);
	kept = text ? names_keep(names, text) : NULL;
	free(text);
	return kept;
}

static const char no_link[] = ""; /* a unique pointer: a link's address is part of a label's key */

/* NULL after a complaint. */
static const char *read_link(struct reader_labels *reader, int64_t span)
{
	sqlite3_stmt *row = reader->link_of;

	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":span"), span);
	int code = sqlite3_step(row);
	const char *link = code == SQLITE_ROW    ? names_keep(reader->names, run_sql_text(row, 0))
	                   : code == SQLITE_DONE ? no_link
	                                         : NULL;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
	else if (!link)
		complain("out of memory");
	sqlite3_reset(row);
	return link;
}

/* The ids of a span in the file; no_link for other spans. NULL after a complaint. */
static const char *find_link(struct reader_labels *reader, int64_t span)
{
	uint64_t words[] = { reader->side, (uint64_t)span };

	if (!span || !reader->has_links)
		return no_link;
	const char **link = index_item(&reader->link_index, hash_words(words, 2), &reader->links);
	if (!link)
		complain("out of memory");
	else if (!*link)
		*link = read_link(reader, span);
	return link ? *link : NULL;
}

/* Reads an entry from its row. False: no memory. */
typedef bool fill_entry(struct reader_labels *reader, sqlite3_stmt *row, void *entry);

/* The entry, filled from the row with these numbers if it is new. NULL after a complaint, also below. */
static const void *fill_once(struct reader_labels *reader, void *entry, bool is_filled, fill_entry *fill,
                             sqlite3_stmt *row, int64_t first, int64_t second)
{
	if (entry && !is_filled) {
		sqlite3_bind_int64(row, 1, first);
		if (sqlite3_bind_parameter_count(row) > 1)
			sqlite3_bind_int64(row, 2, second);
		const bool is_there = sqlite3_step(row) == SQLITE_ROW;
		if (is_there)
			is_filled = fill(reader, row, entry);
		else
			complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
		sqlite3_reset(row);
		if (!is_there)
			return NULL;
	}
	if (is_filled)
		return entry;
	complain("out of memory");
	return NULL;
}

static const char *keep_column(struct reader_labels *reader, sqlite3_stmt *row, int column)
{
	return names_keep(reader->names, run_sql_text(row, column));
}

/* Most queries have the same database as the query before. */
static const char *keep_database(struct reader_labels *reader, sqlite3_stmt *row, int column)
{
	if (!reader->database || strcmp(reader->database, run_sql_text(row, column)) != 0)
		reader->database = keep_column(reader, row, column);
	return reader->database;
}

static bool fill_statement(struct reader_labels *reader, sqlite3_stmt *row, void *entry)
{
	struct reader_statement *statement = entry;

	*statement = (struct reader_statement){
		.text = keep_column(reader, row, 0),
		.hash = sqlite3_column_int64(row, 1),
		.runs = sqlite3_column_int64(row, 2),
		.comment = sqlite3_column_int64(row, 3),
	};
	return statement->text;
}

static const struct reader_statement *find_statement(struct reader_labels *reader, int64_t statement)
{
	const uint64_t words[] = { reader->side, (uint64_t)statement };
	struct reader_statement *found =
		index_item(&reader->statement_index, hash_words(words, 2), &reader->statements);

	return fill_once(reader, found, found && found->text, fill_statement, reader->statement_of, statement,
	                 0);
}

/* Reads the query's row and those around it: runs that begin together have adjacent rows, and a step to the
 * next row takes a fraction of a search. A missing query has no texts. False after a complaint. */
static bool read_rows(struct reader_labels *reader, int64_t id)
{
	struct reader_query *const rows = &reader->rows[(uint64_t)id % READER_ROWS & -READER_BLOCK];
	sqlite3_stmt *row = reader->query_of;
	bool fine = true;
	int code;

	for (size_t i = 0; i < READER_BLOCK; i++) {
		free(rows[i].query_id);
		rows[i] = (struct reader_query){ .id = (id & -READER_BLOCK) + (int64_t)i, .database = "" };
	}
	sqlite3_bind_int64(row, 1, id & -READER_BLOCK);
	sqlite3_bind_int64(row, 2, id | (READER_BLOCK - 1));
	while ((code = sqlite3_step(row)) == SQLITE_ROW && fine) {
		struct reader_query *read = &rows[sqlite3_column_int64(row, 0) & (READER_BLOCK - 1)];
		const char *said = run_sql_text(row, 1);

		free(read->query_id); /* a damaged file may have an id twice */
		read->query_id = text_repair(said, strlen(said));
		read->database = keep_database(reader, row, 2);
		read->statement = sqlite3_column_int64(row, 3);
		fine = read->query_id && read->database;
	}
	struct reader_query *asked = &rows[id & (READER_BLOCK - 1)];
	if (fine && code == SQLITE_DONE && !asked->query_id)
		fine = (asked->query_id = strdup(""));
	if (!fine)
		complain("out of memory");
	else if (code != SQLITE_DONE)
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
	sqlite3_reset(row);
	return fine && code == SQLITE_DONE;
}

/* False after a complaint. */
static bool read_query(struct reader_labels *reader, int64_t id, struct live_query *query)
{
	struct reader_query *row = &reader->rows[(uint64_t)id % READER_ROWS];

	if ((row->id != id || !row->query_id) && !read_rows(reader, id))
		return false;
	const struct reader_statement *statement = find_statement(reader, row->statement);
	free(query->query_id);
	query->query_id = row->query_id;
	row->query_id = NULL;
	query->database = row->database;
	if (statement)
		query->statement = *statement;
	return statement;
}

/* NULL after a complaint. */
static const struct live_query *find_query(struct reader_labels *reader, const struct reader_sample *read)
{
	const uint64_t words[] = { reader->side, (uint64_t)read->run };
	const struct hash key = hash_words(words, 2);
	struct live_query *query = find_live(&reader->queries, key);
	uint32_t number;

	if (query)
		return query;
	if (!(query = add_live(&reader->queries, key, read->last_ns, &number)) ||
	    !read_query(reader, read->run, query))
		return NULL;
	query->number = number;
	return query;
}

static bool fill_thread(struct reader_labels *reader, sqlite3_stmt *row, void *entry)
{
	struct reader_thread *thread = entry;

	*thread = (struct reader_thread){
		.thread = keep_column(reader, row, 0),
		.program = keep_column(reader, row, 1),
		.host = keep_column(reader, row, 2),
		.script = keep_column(reader, row, 3),
		.process = sqlite3_column_int64(row, 4),
		.process_id = sqlite3_column_int64(row, 5),
		.thread_id = sqlite3_column_int64(row, 6),
	};
	return thread->thread && thread->program && thread->host && thread->script;
}

static const struct reader_thread *find_thread(struct reader_labels *reader, int64_t thread)
{
	const uint64_t words[] = { reader->side, (uint64_t)thread };
	struct reader_thread *found =
		index_item(&reader->thread_index, hash_words(words, 2), &reader->threads);

	return fill_once(reader, found, found && found->thread, fill_thread, reader->thread_of, thread, 0);
}

static bool fill_sets(struct reader_labels *reader, sqlite3_stmt *row, void *entry)
{
	struct reader_sets *sets = entry;
	struct label_pairs pairs = { .items = { 0 } };
	const bool has_pairs = label_pairs_add_set(&pairs, run_sql_text(row, 0)) &&
	                       label_pairs_add_set(&pairs, run_sql_text(row, 1));

	*sets = (struct reader_sets){
		.labels = has_pairs ? keep_pairs(reader->names, &pairs) : NULL,
		.root = has_pairs ? find_root(reader->names, &pairs, reader->root_key) : NULL,
		.link = keep_column(reader, row, 2),
	};
	label_pairs_free(&pairs);
	return sets->labels && sets->root && sets->link;
}

/* The sets of the statement's comments, which take precedence, and of the program. */
static const struct reader_sets *find_sets(struct reader_labels *reader, int64_t comment, int64_t set)
{
	const uint64_t words[] = { reader->side, (uint64_t)comment, (uint64_t)set };
	struct reader_sets *found = index_item(&reader->set_index, hash_words(words, 3), &reader->sets);

	return fill_once(reader, found, found && found->labels, fill_sets, reader->sets_of, comment, set);
}

/* The trace and span ids of another tracer, like trace_log. */
static const char *find_foreign_link(struct reader_labels *reader, int64_t context, const char *of_sets)
{
	sqlite3_stmt *row = reader->context_of;
	const char *link = strlen(of_sets) == LINK_SIZE ? of_sets : no_link;

	if (!context)
		return link;
	sqlite3_bind_int64(row, 1, context);
	const int code = sqlite3_step(row);
	if (code == SQLITE_ROW)
		link = strlen(run_sql_text(row, 0)) == LINK_SIZE ? keep_column(reader, row, 0) : no_link;
	else if (code != SQLITE_DONE)
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
	sqlite3_reset(row);
	if (!link)
		complain("out of memory");
	return code == SQLITE_ROW || code == SQLITE_DONE ? link : NULL;
}

/* NULL after a complaint. */
static const struct export_labels *keep_labels(struct reader_labels *reader, struct hash key, int64_t last_ns,
                                               const struct export_labels *made)
{
	uint32_t number;
	struct export_labels *kept = add_live(&reader->labels, key, last_ns, &number);

	if (kept) {
		*kept = *made;
		kept->number = number;
		kept->last_ns = last_ns;
	}
	return kept;
}

static const struct export_labels *read_labels(struct reader_labels *reader, const struct reader_sample *read,
                                               const char *link, struct hash key)
{
	const struct live_query *query = find_query(reader, read);
	const struct reader_thread *thread = query ? find_thread(reader, read->thread) : NULL;
	const struct reader_sets *sets =
		thread ? find_sets(reader, query->statement.comment, read->labels) : NULL;

	/* The file's span is the innermost, and goes to the same collector. */
	if (sets && !link[0])
		link = find_foreign_link(reader, read->context, sets->link);
	if (!sets || !link)
		return NULL;
	return keep_labels(reader, key, read->last_ns,
	                   &(struct export_labels){
				   .side = reader->side,
				   .query = query->number,
				   .query_id = query->query_id,
				   .thread = thread->thread,
				   .database = query->database,
				   .statement = query->statement.text,
				   .program = thread->program,
				   .host = thread->host,
				   .script = thread->script,
				   .statement_hash = query->statement.hash,
				   .statement_runs = query->statement.runs,
				   .process = thread->process,
				   .process_id = thread->process_id,
				   .thread_id = thread->thread_id,
				   .labels = sets->labels,
				   .root = sets->root,
				   .link = link,
			   });
}

/* NULL after a complaint. */
static const struct export_labels *find_labels_by_key(struct reader_labels *reader,
                                                      const struct reader_sample *read)
{
	const char *link = find_link(reader, read->span);
	const uint64_t words[] = { reader->side,           (uint64_t)read->run,     (uint64_t)read->thread,
		                   (uint64_t)read->labels, (uint64_t)read->context, (uintptr_t)link };

	if (!link)
		return NULL;
	const struct hash key = hash_words(words, 6);
	const struct export_labels *known = find_live(&reader->labels, key);
	return known ? known : read_labels(reader, read, link, key);
}

/* The labels for a format that reads only a part: samples with equal parts share them. NULL after a
 * complaint. */
static const struct export_labels *find_few_labels(struct reader_labels *reader,
                                                   const struct reader_sample *read)
{
	static const struct reader_statement no_statement = { .text = "" };
	const struct reader_statement *statement = &no_statement;
	const struct reader_sets *sets = NULL;

	if (reader->labels_read == EXPORT_LABELS_STATEMENT &&
	    !(statement = find_statement(reader, read->statement)))
		return NULL;
	if (reader->labels_read == EXPORT_LABELS_STATEMENT && !statement->text[0])
		return find_labels_by_key(reader, read); /* the query identifies it */
	if (reader->root_key && !(sets = find_sets(reader, read->comment, read->labels)))
		return NULL;
	const char *root = sets ? sets->root : "";
	const uint64_t words[] = { reader->side, (uintptr_t)statement->text, (uint64_t)statement->hash,
		                   (uintptr_t)(sets ? root : NULL) };
	const struct hash key = hash_words(words, 4);
	const struct export_labels *known = find_live(&reader->labels, key);

	return known ? known
	             : keep_labels(reader, key, INT64_MAX,
	                           &(struct export_labels){
					   .side = reader->side,
					   .statement = statement->text,
					   .statement_hash = statement->hash,
					   .statement_runs = statement->runs,
					   .root = root,
				   });
}

const struct export_labels *reader_labels_find(struct reader_labels *reader, const struct reader_sample *read)
{
	struct reader_sample bare;

	if (reader->labels_read == EXPORT_LABELS_RUN) {
		bare = *read;
		bare.labels = bare.context = bare.span = 0;
		read = &bare;
	} else if (reader->labels_read != EXPORT_LABELS_ALL) {
		return find_few_labels(reader, read);
	}
	struct reader_newest *newest =
		&reader->newest[((uint64_t)read->thread * 131 + (uint64_t)read->labels) % READER_NEWEST];

	if (newest->labels && newest->run == read->run && newest->thread == read->thread &&
	    newest->set == read->labels && newest->context == read->context && newest->span == read->span)
		return newest->labels;
	*newest = (struct reader_newest){ read->run,     read->thread, read->labels,
		                          read->context, read->span,   find_labels_by_key(reader, read) };
	return newest->labels;
}

/* --- the ends of runs ---------------------------------------------------------------- */

/* The entries of a table whose runs have not ended. */
struct dropping {
	VECTOR(struct entry) left;
	struct reader_live *live;
	int64_t now_ns;
	bool fine;
};

static void drop_if_ended(void *context, void *of)
{
	struct dropping *dropping = context;
	const struct entry *entry = of;

	dropping->fine &= entry->last_ns >= dropping->now_ns
	                          ? vector_push(&dropping->left, *entry)
	                          : vector_push(&dropping->live->free, entry->number);
}

static bool drop_ended(struct reader_live *live, int64_t now_ns)
{
	struct dropping dropping = { .live = live, .now_ns = now_ns, .fine = true };

	hash_table_each(&live->table, drop_if_ended, &dropping);
	hash_table_clear(&live->table);
	for (size_t i = 0; i < dropping.left.count; i++) {
		const struct entry *left = &dropping.left.items[i];
		struct entry *entry = hash_table_add(&live->table, left->key); /* has room */

		entry->last_ns = left->last_ns;
		entry->number = left->number;
	}
	vector_free(&dropping.left);
	return dropping.fine;
}

bool reader_labels_drop(struct reader_labels *reader, int64_t now_ns)
{
	memset(reader->newest, 0, sizeof(reader->newest));
	return drop_ended(&reader->labels, now_ns) && drop_ended(&reader->queries, now_ns);
}

/* --- files --------------------------------------------------------------------------- */

static int prepare(struct reader_labels *reader, const char *sql, sqlite3_stmt **row)
{
	return sqlite3_prepare_v2(reader->db, sql, -1, row, NULL);
}

static void begin_live(struct reader_live *live, size_t size)
{
	live->size = size;
	live->table.entry_size = sizeof(struct entry);
	live->table.limit = SIZE_MAX;
}

int reader_labels_enter(struct reader_labels *reader, sqlite3 *db, const char *path, uint32_t side)
{
	reader->path = path;
	reader->side = side;
	reader->db = db;
	begin_live(&reader->labels, sizeof(struct export_labels));
	begin_live(&reader->queries, sizeof(struct live_query));
	int code = prepare(reader, sql_export_query, &reader->query_of);
	if (!code)
		code = prepare(reader, sql_export_statement, &reader->statement_of);
	if (!code)
		code = prepare(reader, sql_export_thread, &reader->thread_of);
	if (!code)
		code = prepare(reader, sql_export_label_sets, &reader->sets_of);
	if (!code)
		code = prepare(reader,
		               "SELECT otel_trace_id || otel_span_id FROM trace_contexts WHERE id = ?",
		               &reader->context_of);
	if (!code && reader->has_links)
		code = sqlite3_exec(db, sql_export_links, NULL, NULL, NULL);
	if (!code && reader->has_links)
		code = prepare(reader, sql_export_link, &reader->link_of);
	return code;
}

void reader_labels_detach(struct reader_labels *reader)
{
	sqlite3_stmt **const rows[] = { &reader->query_of, &reader->statement_of, &reader->thread_of,
		                        &reader->sets_of,  &reader->context_of,   &reader->link_of };

	memset(reader->newest, 0, sizeof(reader->newest)); /* they belong to this file */
	for (size_t i = 0; i < READER_ROWS; i++)
		free(reader->rows[i].query_id);
	memset(reader->rows, 0, sizeof(reader->rows));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sqlite3_finalize(*rows[i]);
		*rows[i] = NULL;
	}
}

static void free_live(struct reader_live *live)
{
	for (size_t i = 0; i < live->blocks.count; i++)
		free(live->blocks.items[i]);
	vector_free(&live->blocks);
	vector_free(&live->free);
	hash_table_free(&live->table);
}

void reader_labels_free(struct reader_labels *reader)
{
	for (uint32_t i = 0; i < reader->queries.next; i++)
		free(((struct live_query *)item_at(&reader->queries, i))->query_id);
	free_live(&reader->labels);
	free_live(&reader->queries);
	vector_free(&reader->links);
	vector_free(&reader->statements);
	vector_free(&reader->threads);
	vector_free(&reader->sets);
	index_free(&reader->link_index);
	index_free(&reader->statement_index);
	index_free(&reader->thread_index);
	index_free(&reader->set_index);
}
