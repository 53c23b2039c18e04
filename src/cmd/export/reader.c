/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/export/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "label/pairs.h"
#include "sql_export_labels.h"
#include "sql_export_link.h"
#include "sql_export_links.h"

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
	vector_free(&reader->stacks);
	vector_free(&reader->links);
	vector_free(&reader->waits);
	plan_paths_free(&reader->paths);
	index_free(&reader->label_index);
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
	if (sqlite3_prepare_v2(db, sql_export_labels, -1, &reader->labels_of, NULL) == SQLITE_OK &&
	    plan_paths_open(&reader->paths, db) &&
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
	sqlite3_finalize(reader->labels_of);
	sqlite3_finalize(reader->stack_of);
	sqlite3_finalize(reader->link_of);
	sqlite3_finalize(reader->wait_of);
	plan_paths_close(&reader->paths);
	reader->labels_of = reader->stack_of = reader->link_of = reader->wait_of = NULL;
}

/* --- stacks and labels ------------------------------------------------ */

static const char *column_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	return text ? text : "";
}

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
	const char *link = code == SQLITE_ROW    ? names_keep(reader->names, column_text(row, 0))
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

/* NULL after a complaint. */
static struct export_labels *read_labels(struct export_reader *reader, int64_t query, int64_t thread,
                                         int64_t set, int64_t context, const char *link)
{
	sqlite3_stmt *row = reader->labels_of;
	struct label_pairs pairs = { .items = { 0 } };

	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":query"), query);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":thread"), thread);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":labels"), set);
	sqlite3_bind_int64(row, sqlite3_bind_parameter_index(row, ":context"), context);
	if (sqlite3_step(row) != SQLITE_ROW) {
		complain("%s: %s", reader->path, sqlite3_errmsg(reader->db));
		sqlite3_reset(row);
		return NULL;
	}
	bool has_pairs = label_pairs_add_set(&pairs, column_text(row, 5)) &&
	                 label_pairs_add_set(&pairs, column_text(row, 6));
	const struct export_labels read = {
		.side = reader->side,
		.query_id = names_keep(reader->names, column_text(row, 0)),
		.thread = names_keep(reader->names, column_text(row, 1)),
		.database = names_keep(reader->names, column_text(row, 2)),
		.statement = names_keep(reader->names, column_text(row, 3)),
		.program = names_keep(reader->names, column_text(row, 10)),
		.host = names_keep(reader->names, column_text(row, 11)),
		.script = names_keep(reader->names, column_text(row, 14)),
		.statement_hash = sqlite3_column_int64(row, 4),
		.statement_runs = sqlite3_column_int64(row, 7),
		.process = sqlite3_column_int64(row, 13),
		.process_id = sqlite3_column_int64(row, 8),
		.thread_id = sqlite3_column_int64(row, 9),
		.labels = has_pairs ? keep_pairs(reader->names, &pairs) : NULL,
		.root = has_pairs ? find_root(reader->names, &pairs, reader->root_key) : NULL,
		/* The span of the file is the innermost, and goes to the same collector. */
		.link = link[0] ? link
		                : names_keep(reader->names,
		                             strlen(column_text(row, 12)) == 48 ? column_text(row, 12) : ""),
	};
	label_pairs_free(&pairs);
	sqlite3_reset(row);
	bool is_whole = read.query_id && read.thread && read.database && read.statement && read.program &&
	                read.host && read.script && read.labels && read.root && read.link;
	struct export_labels *labels = is_whole ? malloc(sizeof(*labels)) : NULL;
	if (labels)
		*labels = read;
	else
		complain_of_memory();
	return labels;
}

/* NULL after a complaint. */
static const struct export_labels *find_labels(struct export_reader *reader, int64_t query, int64_t thread,
                                               int64_t set, int64_t context, int64_t span)
{
	const char *link = find_link(reader, span);
	uint64_t words[] = { reader->side,  (uint64_t)query,   (uint64_t)thread,
		             (uint64_t)set, (uint64_t)context, (uintptr_t)link };

	if (!link)
		return NULL;
	struct export_labels **labels =
		index_item(&reader->label_index, hash_words(words, 6), &reader->labels);

	if (!labels)
		complain_of_memory();
	else if (!*labels && (*labels = read_labels(reader, query, thread, set, context, link)))
		(*labels)->number = (uint32_t)(labels - reader->labels.items);
	return labels ? *labels : NULL;
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
		reader->names, code == SQLITE_ROW ? column_text(row, 0) : "[]", is_truncated, &bad);
	sqlite3_reset(row);
	if (bad)
		complain("%s: stack %lld is not an array of addresses", reader->path, (long long)id);
	else if (!stack)
		complain_of_memory();
	return stack;
}

/* NULL after a complaint. */
static const struct export_stack *find_bare_stack(struct export_reader *reader, int64_t id, bool is_truncated)
{
	uint64_t words[] = { reader->side, (uint64_t)id, is_truncated };
	const struct export_stack **stack =
		index_item(&reader->stack_index, hash_words(words, 3), &reader->stacks);

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
		*leaf = names_keep(reader->names, column_text(reader->wait_of, 0));
		sqlite3_reset(reader->wait_of);
	}
	if (!leaf || !*leaf) {
		complain_of_memory();
		return NULL;
	}
	return *leaf;
}

/* With the plan's nodes, the wait for a leaf, on the root that the labels say. NULL after a
 * complaint. */
static const struct export_stack *find_stack(struct export_reader *reader, int64_t id, bool is_truncated,
                                             const char *root, const struct plan_path *path, const char *leaf)
{
	const struct export_stack *made = find_bare_stack(reader, id, is_truncated), **stack;
	uint64_t words[] = { reader->side,
		             (uint64_t)id,
		             is_truncated,
		             (uintptr_t)root,
		             path->count ? (uintptr_t)path : 0,
		             (uintptr_t)leaf };
	size_t at;

	if (!made || (!root[0] && !path->count && !leaf[0]))
		return made;
	stack = index_item(&reader->stack_index, hash_words(words, 6), &reader->stacks);
	if (stack && *stack)
		return *stack;
	if (stack && path->count && (at = names_find_interpreter(made)) != SIZE_MAX)
		made = names_insert(reader->names, made, at, path->functions, path->count);
	if (stack && made && leaf[0])
		made = names_insert(reader->names, made, 0, &leaf, 1);
	if (stack && made && root[0])
		made = names_insert(reader->names, made, made->count, &root, 1);
	if (!stack || !made) {
		complain_of_memory();
		return NULL;
	}
	return *stack = made;
}

/* --- reading --------------------------------------------------------------------- */

/* No writer has to look out for sums that overflow: the largest, of all samples, is
 * formed here. False after a complaint. */
static bool check_numbers(struct export_reader *reader, sqlite3_stmt *row, const char *unit,
                          const struct export_sample *sample)
{
	/* A product that is too large is no integer. */
	if (sample->weight >= 0 && sample->period_ns >= 0 && sample->value >= 0 &&
	    sqlite3_column_type(row, 3) == SQLITE_INTEGER &&
	    !__builtin_add_overflow(reader->weight, sample->weight, &reader->weight) &&
	    !__builtin_add_overflow(reader->value, sample->value, &reader->value))
		return true;
	complain("%s: weight %lld, period %lld ns, value %s %s: no sample can have these numbers",
	         reader->path, (long long)sample->weight, (long long)sample->period_ns, column_text(row, 3),
	         unit);
	return false;
}

bool export_reader_sample(struct export_reader *reader, sqlite3_stmt *row, const char *unit,
                          struct export_sample *sample)
{
	*sample = (struct export_sample){
		.time_ns = sqlite3_column_int64(row, 0),
		.weight = sqlite3_column_int64(row, 1),
		.period_ns = sqlite3_column_int64(row, 2),
		.value = sqlite3_column_int64(row, 3),
		.labels = find_labels(reader, sqlite3_column_int64(row, 6), sqlite3_column_int64(row, 7),
		                      sqlite3_column_int64(row, 8), sqlite3_column_int64(row, 12),
		                      sqlite3_column_int64(row, 13)),
	};
	if (!sample->labels || !check_numbers(reader, row, unit, sample))
		return false;
	const struct plan_path *path;
	int code = plan_paths_find(&reader->paths, reader->names, reader->side, sqlite3_column_int64(row, 9),
	                           sqlite3_column_int64(row, 10), &path);
	const char *leaf = find_leaf(reader, sqlite3_column_int64(row, 11));
	if (code != SQLITE_OK) {
		complain("%s: %s", reader->path, sqlite3_errstr(code));
		return false;
	}
	if (!leaf)
		return false;
	sample->stack = find_stack(reader, sqlite3_column_int64(row, 4), sqlite3_column_int(row, 5),
	                           sample->labels->root, path, leaf);
	if (!sample->stack)
		return false;
	names_use(reader->names, sample->stack);
	return true;
}
