/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/export/host_frames.h"
#include "cmd/file/run_sql.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "label/pairs.h"
#include "sql_export_call_frames.h"
#include "sql_export_label_sets.h"
#include "sql_export_link.h"
#include "sql_export_links.h"
#include "sql_export_plan.h"
#include "sql_export_query.h"
#include "sql_export_statement.h"
#include "sql_export_thread.h"

int export_reader_begin(struct export_reader *reader, bool inlines)
{
	reader->names = names_create(inlines);
	return reader->names ? COMMAND_FINE : complain("out of memory");
}

void export_reader_free(struct export_reader *reader)
{
	for (size_t i = 0; i < reader->labels.count; i++)
		free(reader->labels.items[i]);
	vector_free(&reader->labels);
	vector_free(&reader->queries);
	vector_free(&reader->statements);
	vector_free(&reader->threads);
	vector_free(&reader->sets);
	vector_free(&reader->stacks);
	vector_free(&reader->bare_stacks);
	vector_free(&reader->links);
	vector_free(&reader->waits);
	frame_paths_free(&reader->nodes);
	frame_paths_free(&reader->calls);
	index_free(&reader->label_index);
	index_free(&reader->query_index);
	index_free(&reader->statement_index);
	index_free(&reader->thread_index);
	index_free(&reader->set_index);
	index_free(&reader->stack_index);
	index_free(&reader->link_index);
	index_free(&reader->wait_index);
	names_free(reader->names);
}

int export_reader_enter(struct export_reader *reader, sqlite3 *db, const char *path, uint32_t side)
{
	static const char wait_sql[] =
		"SELECT coalesce('[wait: ' || (SELECT name FROM wait_causes WHERE cause = ?1 & 255)"
		" || coalesce(' ' || (SELECT name FROM wait_objects WHERE object = ?1 >> 8), '') || ']', '')";

	reader->path = path;
	reader->side = side;
	reader->db = db;
	names_enter(reader->names, trace_file_space(db));
	if (sqlite3_prepare_v2(db, sql_export_query, -1, &reader->query_of, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql_export_statement, -1, &reader->statement_of, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql_export_thread, -1, &reader->thread_of, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql_export_label_sets, -1, &reader->sets_of, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT otel_trace_id || otel_span_id FROM trace_contexts WHERE id = ?",
	                       -1, &reader->context_of, NULL) == SQLITE_OK &&
	    frame_paths_open(&reader->nodes, db, sql_export_plan) &&
	    frame_paths_open(&reader->calls, db, sql_export_call_frames) &&
	    (!reader->has_links ||
	     (sqlite3_exec(db, sql_export_links, NULL, NULL, NULL) == SQLITE_OK &&
	      sqlite3_prepare_v2(db, sql_export_link, -1, &reader->link_of, NULL) == SQLITE_OK)) &&
	    sqlite3_prepare_v2(db, wait_sql, -1, &reader->wait_of, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT trace FROM stacks WHERE id = ?", -1, &reader->stack_of, NULL) ==
	            SQLITE_OK)
		return COMMAND_FINE;
	return complain("%s: %s", path, sqlite3_errmsg(db));
}

void export_reader_detach(struct export_reader *reader)
{
	memset(reader->newest, 0, sizeof(reader->newest)); /* of this file */
	vector_free(&reader->bare_stacks);
	sqlite3_finalize(reader->query_of);
	sqlite3_finalize(reader->statement_of);
	sqlite3_finalize(reader->thread_of);
	sqlite3_finalize(reader->sets_of);
	sqlite3_finalize(reader->context_of);
	sqlite3_finalize(reader->stack_of);
	sqlite3_finalize(reader->link_of);
	sqlite3_finalize(reader->wait_of);
	frame_paths_close(&reader->nodes);
	frame_paths_close(&reader->calls);
	reader->query_of = reader->statement_of = reader->thread_of = reader->sets_of = reader->context_of =
		NULL;
	reader->stack_of = reader->link_of = reader->wait_of = NULL;
}

/* --- stacks and labels ------------------------------------------------ */

static int complain_of_memory(void)
{
	return complain("out of memory");
}

/* NULL: no memory. */
static const char *keep_pairs(struct names *names, struct label_pairs *pairs)
{
	char *text = label_pairs_text(pairs);
	const char *kept = text ? names_keep(names, text) : NULL;

	free(text);
	return kept;
}

/* The value of the label with that key; "": there is no key. NULL: no memory. */
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

static const char no_link[] = ""; /* one place: where its link stands distinguishes a label */

/* NULL after a complaint. */
static const char *read_link(struct export_reader *reader, int64_t span)
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
		complain_of_memory();
	sqlite3_reset(row);
	return link;
}

/* The ids of a span that the file has, no_link for others. NULL after a complaint. */
static const char *find_link(struct export_reader *reader, int64_t span)
{
	uint64_t words[] = { reader->side, (uint64_t)span };

	if (!span || !reader->has_links)
		return no_link;
	const char **link = index_item(&reader->link_index, hash_words(words, 2), &reader->links);
	if (!link)
		complain_of_memory();
	else if (!*link)
		*link = read_link(reader, span);
	return link ? *link : NULL;
}

/* The row of numbers that the statement is about, with one result. False after a complaint. */
static bool step_to(struct export_reader *reader, sqlite3_stmt *row, int64_t first, int64_t second)
{
	sqlite3_bind_int64(row, 1, first);
	if (sqlite3_bind_parameter_count(row) > 1)
		sqlite3_bind_int64(row, 2, second);
	if (sqlite3_step(row) == SQLITE_ROW)
		return true;
	complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
	sqlite3_reset(row);
	return false;
}

static const char *keep_column(struct export_reader *reader, sqlite3_stmt *row, int column)
{
	return names_keep(reader->names, run_sql_text(row, column));
}

/* NULL after a complaint, and so below. */
static const struct reader_statement *find_statement(struct export_reader *reader, int64_t statement)
{
	const uint64_t words[] = { reader->side, (uint64_t)statement };
	struct reader_statement *found =
		index_item(&reader->statement_index, hash_words(words, 2), &reader->statements);
	sqlite3_stmt *row = reader->statement_of;

	if (found && !found->text) {
		if (!step_to(reader, row, statement, 0))
			return NULL;
		*found = (struct reader_statement){
			.text = keep_column(reader, row, 0),
			.hash = sqlite3_column_int64(row, 1),
			.runs = sqlite3_column_int64(row, 2),
			.comment = sqlite3_column_int64(row, 3),
		};
		sqlite3_reset(row);
	}
	if (found && found->text)
		return found;
	complain_of_memory();
	return NULL;
}

/* What the labels of all samples of a query have. */
static const struct reader_query *find_query(struct export_reader *reader, int64_t query)
{
	const uint64_t words[] = { reader->side, (uint64_t)query };
	struct reader_query *found = index_item(&reader->query_index, hash_words(words, 2), &reader->queries);
	sqlite3_stmt *row = reader->query_of;

	if (found && !found->query_id) {
		if (!step_to(reader, row, query, 0))
			return NULL;
		*found = (struct reader_query){
			.query_id = keep_column(reader, row, 0),
			.database = keep_column(reader, row, 1),
			.call_stack = sqlite3_column_int64(row, 3),
		};
		const struct reader_statement *statement =
			find_statement(reader, sqlite3_column_int64(row, 2));
		sqlite3_reset(row);
		if (!statement)
			return NULL;
		found->statement = (uint32_t)(statement - reader->statements.items);
	}
	if (found && found->query_id && found->database)
		return found;
	complain_of_memory();
	return NULL;
}

static const struct reader_thread *find_thread(struct export_reader *reader, int64_t thread)
{
	const uint64_t words[] = { reader->side, (uint64_t)thread };
	struct reader_thread *found =
		index_item(&reader->thread_index, hash_words(words, 2), &reader->threads);
	sqlite3_stmt *row = reader->thread_of;

	if (found && !found->thread) {
		if (!step_to(reader, row, thread, 0))
			return NULL;
		*found = (struct reader_thread){
			.thread = keep_column(reader, row, 0),
			.program = keep_column(reader, row, 1),
			.host = keep_column(reader, row, 2),
			.script = keep_column(reader, row, 3),
			.process = sqlite3_column_int64(row, 4),
			.process_id = sqlite3_column_int64(row, 5),
			.thread_id = sqlite3_column_int64(row, 6),
		};
		sqlite3_reset(row);
	}
	if (found && found->thread && found->program && found->host && found->script)
		return found;
	complain_of_memory();
	return NULL;
}

/* The sets of the statement's comments, which counts first, and of the program. */
static const struct reader_sets *find_sets(struct export_reader *reader, int64_t comment, int64_t set)
{
	const uint64_t words[] = { reader->side, (uint64_t)comment, (uint64_t)set };
	struct reader_sets *found = index_item(&reader->set_index, hash_words(words, 3), &reader->sets);
	sqlite3_stmt *row = reader->sets_of;
	struct label_pairs pairs = { .items = { 0 } };

	if (found && !found->labels) {
		if (!step_to(reader, row, comment, set))
			return NULL;
		const bool has_pairs = label_pairs_add_set(&pairs, run_sql_text(row, 0)) &&
		                       label_pairs_add_set(&pairs, run_sql_text(row, 1));
		*found = (struct reader_sets){
			.labels = has_pairs ? keep_pairs(reader->names, &pairs) : NULL,
			.root = has_pairs ? find_root(reader->names, &pairs, reader->root_key) : NULL,
			.link = keep_column(reader, row, 2),
		};
		label_pairs_free(&pairs);
		sqlite3_reset(row);
	}
	if (found && found->labels && found->root && found->link)
		return found;
	complain_of_memory();
	return NULL;
}

/* The ids of a trace and a span of others, as in trace_log. */
static const char *find_foreign_link(struct export_reader *reader, int64_t context, const char *of_sets)
{
	sqlite3_stmt *row = reader->context_of;
	const char *link = of_sets;
	int code = SQLITE_DONE;

	if (context) {
		sqlite3_bind_int64(row, 1, context);
		code = sqlite3_step(row);
	}
	if (code == SQLITE_ROW)
		link = run_sql_text(row, 0);
	else if (code != SQLITE_DONE)
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
	const char *kept = names_keep(reader->names, strlen(link) == 48 ? link : "");
	sqlite3_reset(row);
	if (!kept)
		complain_of_memory();
	return code == SQLITE_ROW || code == SQLITE_DONE ? kept : NULL;
}

static struct export_labels *read_labels(struct export_reader *reader, const struct reader_sample *read,
                                         const char *link)
{
	const struct reader_query *of_query = find_query(reader, read->run);
	const struct reader_thread *of_thread = of_query ? find_thread(reader, read->thread) : NULL;
	const struct reader_statement *statement =
		of_thread ? &reader->statements.items[of_query->statement] : NULL;
	const struct reader_sets *sets =
		of_thread ? find_sets(reader, statement->comment, read->labels) : NULL;

	/* The span of the file is the innermost, and goes to the same collector. */
	if (sets && !link[0])
		link = find_foreign_link(reader, read->context, sets->link);
	if (!sets || !link)
		return NULL;
	struct export_labels *labels = malloc(sizeof(*labels));
	if (!labels) {
		complain_of_memory();
		return NULL;
	}
	*labels = (struct export_labels){
		.side = reader->side,
		.query_id = of_query->query_id,
		.thread = of_thread->thread,
		.database = of_query->database,
		.statement = statement->text,
		.program = of_thread->program,
		.host = of_thread->host,
		.script = of_thread->script,
		.call_stack = of_query->call_stack,
		.statement_hash = statement->hash,
		.statement_runs = statement->runs,
		.process = of_thread->process,
		.process_id = of_thread->process_id,
		.thread_id = of_thread->thread_id,
		.labels = sets->labels,
		.root = sets->root,
		.link = link,
	};
	return labels;
}

/* NULL after a complaint. */
static const struct export_labels *find_labels_by_key(struct export_reader *reader,
                                                      const struct reader_sample *read)
{
	const char *link = find_link(reader, read->span);
	uint64_t words[] = { reader->side,           (uint64_t)read->run,     (uint64_t)read->thread,
		             (uint64_t)read->labels, (uint64_t)read->context, (uintptr_t)link };

	if (!link)
		return NULL;
	struct export_labels **labels =
		index_item(&reader->label_index, hash_words(words, 6), &reader->labels);

	if (!labels)
		complain_of_memory();
	else if (!*labels && (*labels = read_labels(reader, read, link)))
		(*labels)->number = (uint32_t)(labels - reader->labels.items);
	return labels ? *labels : NULL;
}

/* The labels of a format that does not read all: one for all samples that are the same to it. NULL after a
 * complaint. */
static const struct export_labels *find_few_labels(struct export_reader *reader,
                                                   const struct reader_sample *read)
{
	static const struct reader_statement no_statement = { .text = "" };
	const struct reader_statement *statement = &no_statement;
	const struct reader_sets *sets = NULL;

	if (reader->labels_read == EXPORT_LABELS_STATEMENT &&
	    !(statement = find_statement(reader, read->statement)))
		return NULL;
	if (reader->labels_read == EXPORT_LABELS_STATEMENT && !statement->text[0])
		return find_labels_by_key(reader, read); /* the query stands for it */
	if (reader->root_key && !(sets = find_sets(reader, read->comment, read->labels)))
		return NULL;
	const char *root = sets ? sets->root : "";
	const uint64_t words[] = { reader->side, (uintptr_t)statement->text, (uint64_t)statement->hash,
		                   (uintptr_t)(sets ? root : NULL) };
	struct export_labels **labels =
		index_item(&reader->label_index, hash_words(words, 4), &reader->labels);
	if (labels && !*labels && (*labels = calloc(1, sizeof(**labels))))
		**labels = (struct export_labels){
			.number = (uint32_t)(labels - reader->labels.items),
			.side = reader->side,
			.statement = statement->text,
			.statement_hash = statement->hash,
			.statement_runs = statement->runs,
			.root = root,
		};
	if (!labels || !*labels)
		complain_of_memory();
	return labels ? *labels : NULL;
}

/* NULL after a complaint. */
static const struct export_labels *find_labels(struct export_reader *reader, const struct reader_sample *read)
{
	if (reader->labels_read != EXPORT_LABELS_ALL)
		return find_few_labels(reader, read);
	struct reader_newest *newest =
		&reader->newest[((uint64_t)read->thread * 17 + (uint64_t)read->labels) % READER_NEWEST];

	if (newest->labels && newest->run == read->run && newest->thread == read->thread &&
	    newest->set == read->labels && newest->context == read->context && newest->span == read->span)
		return newest->labels;
	*newest = (struct reader_newest){ read->run,     read->thread, read->labels,
		                          read->context, read->span,   find_labels_by_key(reader, read) };
	return newest->labels;
}

/* NULL after a complaint. */
static const struct export_stack *read_stack(struct export_reader *reader, int64_t id, bool is_truncated)
{
	sqlite3_stmt *row = reader->stack_of;
	bool bad = false;

	sqlite3_bind_int64(row, 1, id);
	/* A sample whose stack is not there still took its time. */
	int code = sqlite3_step(row);
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
		sqlite3_reset(row);
		return NULL;
	}
	const struct export_stack *stack = names_stack(
		reader->names, code == SQLITE_ROW ? run_sql_text(row, 0) : "[]", is_truncated, &bad);
	sqlite3_reset(row);
	if (bad)
		complain("%s: stack %lld is not an array of addresses", reader->path, (long long)id);
	else if (!stack)
		complain_of_memory();
	return stack;
}

#define LOW_STACKS 1000000

/* NULL after a complaint. */
static const struct export_stack *find_bare_stack(struct export_reader *reader, int64_t id, bool is_truncated)
{
	uint64_t words[] = { reader->side, (uint64_t)id, is_truncated };
	const struct export_stack **stack =
		(uint64_t)id < LOW_STACKS
			? vector_at(&reader->bare_stacks, 2 * (size_t)id + is_truncated)
			: index_item(&reader->stack_index, hash_words(words, 3), &reader->stacks);

	if (!stack)
		complain_of_memory();
	else if (!*stack)
		*stack = read_stack(reader, id, is_truncated);
	return stack ? *stack : NULL;
}

/* The frame that stands for what the thread waited for, as code that it was in: the cause and the
 * object. "" for no wait; NULL after a complaint. */
static const char *find_leaf(struct export_reader *reader, int64_t wait)
{
	if (!wait)
		return "";
	const char **leaf =
		index_item(&reader->wait_index,
	                   hash_words((const uint64_t[]){ reader->side, (uint64_t)wait }, 2), &reader->waits);
	if (leaf && !*leaf) {
		sqlite3_bind_int64(reader->wait_of, 1, wait);
		sqlite3_step(reader->wait_of);
		*leaf = names_keep(reader->names, run_sql_text(reader->wait_of, 0));
		sqlite3_reset(reader->wait_of);
	}
	if (!leaf || !*leaf) {
		complain_of_memory();
		return NULL;
	}
	return *leaf;
}

/* With the program's frames, the plan's nodes, the wait as the leaf, and the root from the labels. NULL after
 * a complaint. */
static const struct export_stack *find_stack(struct export_reader *reader, int64_t id, bool is_truncated,
                                             const char *root, const struct frame_path *call,
                                             const struct frame_path *path, const char *leaf)
{
	const struct export_stack *made, **stack;
	uint64_t words[] = { reader->side,
		             (uint64_t)id,
		             is_truncated,
		             (uintptr_t)root,
		             call->count ? (uintptr_t)call : 0,
		             path->count ? (uintptr_t)path : 0,
		             (uintptr_t)leaf };
	size_t at, end;

	if (!root[0] && !call->count && !path->count && !leaf[0])
		return find_bare_stack(reader, id, is_truncated);
	stack = index_item(&reader->stack_index, hash_words(words, 7), &reader->stacks);
	if (stack && *stack)
		return *stack;
	if (!(made = find_bare_stack(reader, id, is_truncated)))
		return NULL;
	stack = index_item(&reader->stack_index, hash_words(words, 7),
	                   &reader->stacks); /* it may have moved */
	if (stack && call->count && host_frames_find(made, &at, &end))
		made = names_replace(reader->names, made, at, reader->host == HOST_IS_CALL_STACK ? end : at,
		                     call->functions, call->count);
	if (stack && made && path->count && (at = names_find_interpreter(made)) != SIZE_MAX)
		made = names_replace(reader->names, made, at, at, path->functions, path->count);
	if (stack && made && leaf[0])
		made = names_replace(reader->names, made, 0, 0, &leaf, 1);
	if (stack && made && root[0])
		made = names_replace(reader->names, made, made->count, made->count, &root, 1);
	if (!stack || !made) {
		complain_of_memory();
		return NULL;
	}
	return *stack = made;
}

/* --- reading --------------------------------------------------------------------- */

/* No writer has to look out for sums that overflow: the largest, of all samples, is
 * formed here. False after a complaint. */
static bool check_numbers(struct export_reader *reader, const struct reader_sample *read, const char *unit,
                          struct export_sample *sample)
{
	int64_t time;

	if (read->weight >= 0 && read->period_ns >= 0 &&
	    !__builtin_mul_overflow(read->weight, read->period_ns, &time) &&
	    !__builtin_add_overflow(time, read->size, &sample->value) && sample->value >= 0 &&
	    !__builtin_add_overflow(reader->weight, sample->weight, &reader->weight) &&
	    !__builtin_add_overflow(reader->value, sample->value, &reader->value))
		return true;
	complain("%s: weight %lld, period %lld ns, value %.15g %s: no sample can have these numbers",
	         reader->path, (long long)read->weight, (long long)read->period_ns,
	         (double)read->size + (double)read->weight * (double)read->period_ns, unit);
	return false;
}

bool export_reader_sample(struct export_reader *reader, const struct reader_sample *read, const char *unit,
                          struct export_sample *sample)
{
	*sample = (struct export_sample){
		.time_ns = read->time_ns,
		.weight = read->weight,
		.period_ns = read->period_ns,
		.labels = find_labels(reader, read),
	};
	if (!sample->labels || !check_numbers(reader, read, unit, sample))
		return false;
	const struct frame_path *path, *call;
	int code = frame_paths_find(&reader->nodes, reader->names, reader->side, read->program, read->node,
	                            &path);
	if (code == SQLITE_OK)
		code = frame_paths_find(&reader->calls, reader->names, reader->side, 0,
		                        reader->host != HOST_AS_SAMPLED ? read->call_stack : 0, &call);
	const char *leaf = find_leaf(reader, read->wait);
	if (code != SQLITE_OK) {
		complain("%s: %s", reader->path, sqlite3_errstr(code));
		return false;
	}
	if (!leaf)
		return false;
	sample->stack =
		find_stack(reader, read->stack, read->is_truncated, sample->labels->root, call, path, leaf);
	if (!sample->stack)
		return false;
	names_use(reader->names, sample->stack);
	return true;
}
