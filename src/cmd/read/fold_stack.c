/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack has three parts: the frames of SQLite; the host's way to the call, often dozens of frames of an
 * interpreter; and the C library's frames before main(). Of the host's part, the result shows the caller of
 * SQLite, the program's own frames and main(), and the number of the frames between them. queryprof's wrapper
 * of the call is never shown.
 *
 * Frames towards the root that an earlier stack has shown are not repeated.
 */
#include "cmd/read/fold_stack.h"

#include <langinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/vector.h"

#define FOLDED_SIZE 48    /* of a line with a number of frames */
#define OWN_FRAMES_MAX 10 /* of the program, nearest to SQLite: a recursion has thousands */

struct lines {
	char *text;   /* contains the lines */
	char *folded; /* after the text: room for such lines */
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

/* Splits a copy of `text` into lines. False: no memory. */
static bool split(struct lines *lines, const char *text)
{
	size_t size = strlen(text) + 1;
	char *rest = lines->text = malloc(size + (OWN_FRAMES_MAX + 1) * FOLDED_SIZE);

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

/* Whether the line names that function, with or without its source line. */
static bool is_function(const char *line, const char *name)
{
	size_t size = strlen(name);

	return strncmp(line, name, size) == 0 && (!line[size] || strncmp(line + size, " (", 2) == 0);
}

/* The index of the function nearest to the root whose name is, or begins with, `name`; -1: none. */
static ssize_t find_outermost(const struct lines *functions, const char *name, bool is_start)
{
	for (size_t i = functions->at.count; i-- > 0;)
		if (is_start ? begins_with(functions->at.items[i], name)
		             : is_function(functions->at.items[i], name))
			return (ssize_t)i;
	return -1;
}

static void remove_ours(struct lines *functions, struct lines *owners, const struct lines *modules)
{
	size_t kept = 0;

	for (size_t i = 0; i < functions->at.count; i++)
		if (i >= modules->at.count || !begins_with(modules->at.items[i], "libqueryprof")) {
			if (i < owners->at.count)
				owners->at.items[kept] = owners->at.items[i];
			functions->at.items[kept++] = functions->at.items[i];
		}
	functions->at.count = kept;
	owners->at.count = kept < owners->at.count ? kept : owners->at.count;
}

static bool is_own(const struct lines *owners, size_t frame)
{
	return frame < owners->at.count && owners->at.items[frame][0] == '1';
}

/* Keeps the frames from `first` to before `end`; several become one line with their number. */
static void fold(struct lines *functions, size_t *kept, size_t first, size_t end)
{
	if (end - first < 2) {
		if (first < end)
			functions->at.items[(*kept)++] = functions->at.items[first];
		return;
	}
	snprintf(functions->folded, FOLDED_SIZE, "%s %zu frames", ellipsis(), end - first);
	functions->at.items[(*kept)++] = functions->folded;
	functions->folded += FOLDED_SIZE;
}

static void fold_host(struct lines *functions, const struct lines *owners)
{
	ssize_t api = find_outermost(functions, "sqlite3_", true),
		begin = find_outermost(functions, "main", false);
	size_t kept = (size_t)api + 2; /* after the caller of SQLite */
	size_t first = kept, shown = 0;

	if (api < 0)
		return;
	if (begin > api)
		functions->at.count = (size_t)begin + 1; /* main() is the last one shown */
	size_t end = begin > api ? (size_t)begin : functions->at.count;
	if (first >= end)
		return;
	for (size_t i = first; i < end; i++)
		if (is_own(owners, i) && shown < OWN_FRAMES_MAX) {
			fold(functions, &kept, first, i);
			functions->at.items[kept++] = functions->at.items[i];
			first = i + 1;
			shown++;
		}
	fold(functions, &kept, first, end);
	while (end < functions->at.count)
		functions->at.items[kept++] = functions->at.items[end++];
	functions->at.count = kept;
}

/* The largest number of lines towards the root that an earlier stack shares. shown: the ends of all earlier
 * stacks, of each length; this adds those of the new one. An end without memory is new again next time. */
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
	/* At least its leaf is shown. */
	return same < lines->at.count || !same ? same : same - 1;
}

static char *join(const struct lines *lines, size_t common)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);
	/* "as above" takes a line, and refers to the line before it. */
	size_t count = common > 2 ? lines->at.count - common + 1 : lines->at.count;

	for (size_t i = 0; to && i < count; i++)
		fprintf(to, "%s%s", i ? "\n" : "", lines->at.items[i]);
	if (to && count < lines->at.count)
		fprintf(to, "\n%s as above", ellipsis());
	return to && fclose(to) == 0 ? text : NULL;
}

/* The text to show; NULL: no memory. */
static char *show(struct hash_table *shown, const char *functions, const char *modules, const char *owners)
{
	struct lines lines = { .text = NULL }, of_modules = { .text = NULL }, of_owners = { .text = NULL };
	char *text = NULL;

	if (split(&lines, functions) && split(&of_modules, modules) && split(&of_owners, owners)) {
		remove_ours(&lines, &of_owners, &of_modules);
		fold_host(&lines, &of_owners);
		text = join(&lines, count_common(shown, &lines));
	}
	free_lines(&of_owners);
	free_lines(&of_modules);
	free_lines(&lines);
	return text;
}

static void fold_stack(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const char *functions = (const char *)sqlite3_value_text(argv[0]),
		   *modules = (const char *)sqlite3_value_text(argv[1]),
		   *owners = (const char *)sqlite3_value_text(argv[2]);
	char *text = NULL;

	(void)argc;
	if (functions && modules && owners)
		text = show(sqlite3_user_data(context), functions, modules, owners);
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
	/* If this fails, the destructor has run. */
	return sqlite3_create_function_v2(db, "foldStack", 3, SQLITE_UTF8 | SQLITE_DIRECTONLY, shown,
	                                  fold_stack, NULL, NULL, free_shown);
}
