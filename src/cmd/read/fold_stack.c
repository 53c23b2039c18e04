/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack has three parts: what SQLite does, which is of interest; how the host came to
 * call it, often dozens of frames of an interpreter; and the C library's way to main().
 * The host's part shows the caller of SQLite and main(); between them stands how many
 * frames there are. queryprof's wrapper of the call is no part of the program at all.
 *
 * The frames that the stack then has in common with one that was shown before, towards the
 * root, are not shown again.
 */
#include "cmd/read/fold_stack.h"

#include <langinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/vector.h"

#define FOLDED_SIZE 48 /* of the line that stands for others */

struct lines {
	char *text;   /* in which they lie */
	char *folded; /* behind them: room for such a line */
	VECTOR(char *) at;
};

static const char *ellipsis(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? "\xe2\x80\xa6" : "...";
}

static void free_lines(struct lines *lines)
{
	free(lines->text);
	vector_free(&lines->at);
}

/* Lines of `text`, which is copied. False: no memory. */
static bool split(struct lines *lines, const char *text)
{
	size_t size = strlen(text) + 1;
	char *rest = lines->text = malloc(size + FOLDED_SIZE);

	if (!rest)
		return false;
	memcpy(rest, text, size);
	lines->folded = rest + size;
	while (rest)
		if (!vector_push(&lines->at, strsep(&rest, "\n")))
			return false;
	return true;
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* The place of the function nearest to the root whose name is, or begins with, `name`; -1:
 * none. */
static ssize_t find_outermost(const struct lines *functions, const char *name, bool is_start)
{
	for (size_t i = functions->at.count; i-- > 0;)
		if (is_start ? begins_with(functions->at.items[i], name)
		             : strcmp(functions->at.items[i], name) == 0)
			return (ssize_t)i;
	return -1;
}

static void remove_ours(struct lines *functions, const struct lines *modules)
{
	size_t kept = 0;

	for (size_t i = 0; i < functions->at.count; i++)
		if (i >= modules->at.count || !begins_with(modules->at.items[i], "libqueryprof"))
			functions->at.items[kept++] = functions->at.items[i];
	functions->at.count = kept;
}

/* Replaces `count` lines at `first` by how many they are. */
static void fold(struct lines *functions, size_t first, size_t count)
{
	size_t after = functions->at.count - first - count;

	if (count < 2)
		return;
	snprintf(functions->folded, FOLDED_SIZE, "%s %zu frames", ellipsis(), count);
	functions->at.items[first] = functions->folded;
	memmove(&functions->at.items[first + 1], &functions->at.items[first + count],
	        after * sizeof(functions->at.items[0]));
	functions->at.count = first + 1 + after;
}

static void fold_host(struct lines *functions)
{
	ssize_t api = find_outermost(functions, "sqlite3_", true),
		begin = find_outermost(functions, "main", false);
	size_t first = (size_t)api + 2; /* behind the caller of SQLite */

	if (api < 0)
		return;
	if (begin > api)
		functions->at.count = (size_t)begin + 1; /* main() is the last of interest */
	size_t end = begin > api ? (size_t)begin : functions->at.count;
	if (first < end)
		fold(functions, first, end - first);
}

/* The largest number of lines towards the root that a shown stack ends with, too. `shown`: the ends of all
 * shown stacks, of each length; those of this one are added. One for which there is no memory is taken for
 * new the next time. */
static size_t count_common(struct hash_table *shown, const struct lines *lines)
{
	struct hash end = hash_begin(0);
	size_t same = 0;

	for (size_t count = 1; count <= lines->at.count; count++) {
		const char *line = lines->at.items[lines->at.count - count];
		struct hash of_line = hash_bytes(line, strlen(line));

		hash_word(&end, of_line.first);
		hash_word(&end, of_line.second);
		if (hash_table_find(shown, hash_end(end)))
			same = count;
		else
			hash_table_add(shown, hash_end(end));
	}
	/* Its leaf is shown at least. */
	return same < lines->at.count || !same ? same : same - 1;
}

static char *join(const struct lines *lines, size_t common)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	/* "as above" is a line, too, and needs one to say from where. */
	size_t count = common > 2 ? lines->at.count - common + 1 : lines->at.count;

	for (size_t i = 0; to && i < count; i++)
		fprintf(to, "%s%s", i ? "\n" : "", lines->at.items[i]);
	if (to && count < lines->at.count)
		fprintf(to, "\n%s as above", ellipsis());
	return to && fclose(to) == 0 ? text : NULL;
}

/* The text to show; NULL: no memory. */
static char *show(struct hash_table *shown, const char *functions, const char *modules)
{
	struct lines lines = { .text = NULL }, of_modules = { .text = NULL };
	char *text = NULL;

	if (split(&lines, functions) && split(&of_modules, modules)) {
		remove_ours(&lines, &of_modules);
		fold_host(&lines);
		text = join(&lines, count_common(shown, &lines));
	}
	free_lines(&of_modules);
	free_lines(&lines);
	return text;
}

static void fold_stack(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *functions = (const char *)sqlite3_value_text(argv[0]),
		   *modules = (const char *)sqlite3_value_text(argv[1]);
	char *text = NULL;

	(void)argc;
	if (functions && modules)
		text = show(sqlite3_user_data(context), functions, modules);
	if (text)
		sqlite3_result_text(context, text, -1, free);
	else
		sqlite3_result_error_nomem(context);
}

static void free_shown(void *data)
{
	hash_table_free(data);
	free(data);
}

int fold_stack_add(sqlite3 *db)
{
	struct hash_table *shown = malloc(sizeof(*shown));

	if (!shown)
		return SQLITE_NOMEM;
	*shown = (struct hash_table)HASH_TABLE_OF(struct hash, SIZE_MAX);
	/* The destructor runs when that fails, too. */
	return sqlite3_create_function_v2(db, "foldStack", 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, shown,
	                                  fold_stack, NULL, NULL, free_shown);
}
