/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/file/virtual_index.h"

static void file_name(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *path = (const char *)sqlite3_value_text(values[0]);
	const char *slash = path ? strrchr(path, '/') : NULL;

	(void)count;
	sqlite3_result_text(context, slash ? slash + 1 : path, -1, SQLITE_TRANSIENT);
}

void words_duration(double ns, char *text, size_t room)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	size_t unit = 0;

	while (unit < 3 && ns < units[unit].ns)
		unit++;
	const double value = ns / units[unit].ns;
	sqlite3_snprintf((int)room, text, value < 10 ? "%.1f %s" : "%,.0f %s", value, units[unit].name);
}

static void duration(sqlite3_context *context, int count, sqlite3_value **values)
{
	char text[64];

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	words_duration(sqlite3_value_double(values[0]), text, sizeof(text));
	sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void one_line(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *text = (const char *)sqlite3_value_text(values[0]);
	int size = sqlite3_value_bytes(values[0]);
	char *line;

	(void)count;
	if (!text)
		return;
	for (; size && strchr(" \n\r\t", *text) && *text; size--)
		text++;
	while (size && strchr(" \n\r\t", text[size - 1]) && text[size - 1])
		size--;
	line = sqlite3_malloc(size + 1);
	if (!line) {
		sqlite3_result_error_nomem(context);
		return;
	}
	for (int i = 0; i < size; i++)
		line[i] = text[i] == '\n' || text[i] == '\r' || text[i] == '\t' ? ' ' : text[i];
	sqlite3_result_text(context, line, size, sqlite3_free);
}

/* Replaces words that begin with a slash by the part after the last one. */
static void without_folders(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *text = (const char *)sqlite3_value_text(values[0]);
	sqlite3_str *to = sqlite3_str_new(sqlite3_context_db_handle(context));
	bool is_word = false;

	(void)count;
	for (; text && *text; text++) {
		const size_t size = is_word || *text != '/' ? 0 : strcspn(text, " \t\n\r,;:()'\"");
		const char *slash = size ? memrchr(text, '/', size) : NULL;

		text = slash ? slash + 1 : text;
		is_word = !strchr(" \t\n\r(", *text);
		if (*text)
			sqlite3_str_appendchar(to, 1, *text);
		else
			break;
	}
	char *made = sqlite3_str_finish(to);
	sqlite3_result_text(context, made, -1, sqlite3_free);
}

static void virtual_words(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *detail = (const char *)sqlite3_value_text(values[0]);
	char *text = NULL;
	size_t size = 0;
	FILE *to = detail ? open_memstream(&text, &size) : NULL;

	(void)count;
	if (!to)
		return;
	const bool is_known = virtual_index_write(to, detail);
	if (fclose(to) || !text)
		sqlite3_result_error_nomem(context);
	else if (is_known)
		sqlite3_result_text(context, text, (int)size, SQLITE_TRANSIENT);
	free(text);
}

int words_add(sqlite3 *db)
{
	static const struct {
		const char *name;
		void (*run)(sqlite3_context *, int, sqlite3_value **);
	} functions[] = { { "fileName", file_name },
		          { "duration", duration },
		          { "oneLine", one_line },
		          { "withoutFolders", without_folders },
		          { "virtualWords", virtual_words } };
	int code = SQLITE_OK;

	for (size_t i = 0; !code && i < sizeof(functions) / sizeof(functions[0]); i++)
		code = sqlite3_create_function(db, functions[i].name, 1,
		                               SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
		                               functions[i].run, NULL, NULL);
	return code;
}

const char *words_path_here(const char *path)
{
	char folder[4096];
	const size_t size = getcwd(folder, sizeof(folder)) ? strlen(folder) : 0;

	return size && !strncmp(path, folder, size) && path[size] == '/' ? path + size + 1 : path;
}
