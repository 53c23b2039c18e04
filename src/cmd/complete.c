/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates come from the tables of the commands. Ids and names come from the trace file on the command
 * line, or else from ./queryprof.trace.
 *
 * bash splits a line at "=", so a value follows its option, or a word "=". Prints a candidate per line, or
 * one line that leaves the completion to bash: ":files", or ":command N" for the command line that begins at
 * word N.
 */
#include "cmd/complete.h"

#include <string.h>

#include "base/text.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/options.h"
#include "settings/settings.h"

static const char *const periods[] = { "0", "100us", "1ms", "10ms", "100ms", NULL };
static const char *const seconds[] = { "10s", "1min", "5min", NULL };
static const char *const times[] = { "now", "today", "yesterday", "start+", "end-", NULL };
static const char *const types[] = { "cpu", "wall", NULL }; /* in any file */
static const char *const switches[] = { "0", "1", NULL };

static void offer(const char *prefix, const char *before, const char *word, const char *after)
{
	char candidate[128];

	snprintf(candidate, sizeof(candidate), "%s%s%s", before, word, after);
	if (strncmp(candidate, prefix, strlen(prefix)) == 0)
		puts(candidate);
}

static void offer_all(const char *prefix, const char *const *words)
{
	for (; *words; words++)
		offer(prefix, "", *words, "");
}

static void offer_options(const char *prefix, const struct command *command)
{
	const struct command_option *const tables[] = { command->options, command->shared };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct command_option *option = tables[i]; option && option->name; option++)
			offer(prefix, option->name[1] ? "--" : "-", option->name, "");
	offer(prefix, "--", "help", "");
}

/* Values from the trace file. ?1: the beginning of the value. */
static const char *const rows_of[] = {
	[OPTION_QUERY] = "SELECT DISTINCT query_id FROM query_log WHERE query_id GLOB ?1 || '*' LIMIT 1000",
	[OPTION_STATEMENT] = "SELECT DISTINCT substr(printf('%016x', normalized_query_hash), 1, 8) AS id "
			     "FROM statements WHERE id GLOB ?1 || '*' LIMIT 1000",
	[OPTION_TYPE] =
		"SELECT DISTINCT name FROM (SELECT iif(name = 'MemorySample', 'memory', name) AS name "
		"FROM sample_types UNION ALL SELECT 'live' FROM sample_types WHERE name = "
		"'MemorySample') WHERE name GLOB ?1 || '*' AND name NOT IN ('CPU', 'Real')",
	[OPTION_DATABASE] =
		"SELECT DISTINCT database FROM queries WHERE database GLOB ?1 || '*' AND database <> ''",
	[OPTION_PROCESS] = "SELECT process_id AS number FROM processes WHERE number GLOB ?1 || '*' "
			   "UNION SELECT executable FROM processes WHERE executable GLOB ?1 || '*' "
			   "UNION SELECT script FROM processes WHERE script GLOB ?1 || '*' AND script <> ''",
	[OPTION_THREAD] = "SELECT DISTINCT thread_name FROM threads WHERE thread_name GLOB ?1 || '*' "
			  "AND thread_name <> ''",
	[OPTION_CALLER] = "SELECT DISTINCT fileName(caller) AS place FROM call_stacks WHERE place GLOB ?1 || "
			  "'*' LIMIT 1000",
};

/* A stranger may have chosen the text. */
static bool is_shown(const char *text)
{
	for (size_t size; *text; text += size) {
		size = text_character_size(text);
		if (!size || text_control(text, size))
			return false;
	}
	return true;
}

static void offer_rows(const char *prefix, const char *path, const char *sql)
{
	sqlite3 *db = trace_file_open(path ? path : TRACE_FILE_DEFAULT);
	sqlite3_stmt *row = NULL;

	if (!db)
		return;
	sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	sqlite3_bind_text(row, 1, prefix, -1, SQLITE_STATIC);
	while (row && sqlite3_step(row) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(row, 0);
		if (text && is_shown(text))
			puts(text);
	}
	sqlite3_finalize(row);
	trace_file_close(db);
}

/* `name`: the text before the "=", or NULL. */
static void offer_settings(const char *prefix, const char *name)
{
	for (const struct setting *setting = NULL; (setting = settings_next(setting));) {
		if (!name && !setting->is_for_one_statement)
			offer(prefix, "", setting->name, "=");
		else if (!name)
			continue;
		else if (strcmp(name, setting->name) != 0 || setting_is_text(setting))
			continue;
		else if (strstr(name, "period_ns"))
			offer_all(prefix, periods);
		else if (setting->form == SETTING_IS_SWITCH)
			offer_all(prefix, switches);
	}
}

static void offer_value(const struct command_option *option, const char *prefix, const char *path)
{
	switch (option->kind) {
	case OPTION_WORD:
		for (size_t i = 0; option->word_at(i); i++)
			offer(prefix, "", option->word_at(i), "");
		break;
	case OPTION_FILE: puts(":files"); break;
	case OPTION_TYPE:
		offer_all(prefix, types);
		offer_rows(prefix, path, rows_of[OPTION_TYPE]);
		break;
	case OPTION_QUERY:
	case OPTION_STATEMENT:
	case OPTION_DATABASE:
	case OPTION_PROCESS:
	case OPTION_THREAD:
	case OPTION_CALLER: offer_rows(prefix, path, rows_of[option->kind]); break;
	case OPTION_TIME: offer_all(prefix, times); break;
	case OPTION_PERIOD: offer_all(prefix, periods); break;
	case OPTION_SECONDS: offer_all(prefix, seconds); break;
	case OPTION_SETTING: offer_settings(prefix, NULL); break;
	case OPTION_TEXT:
	case OPTION_NUMBER:
	case OPTION_FLAG: break;
	}
}

static bool is_equals(int index, int count, char **words)
{
	return index >= 0 && index < count && strcmp(words[index], "=") == 0;
}

/* Completes the words after the command's name. */
static void offer_arguments(const struct command *command, int cursor, int count, char **words)
{
	const char *prefix = cursor < count ? words[cursor] : "", *path = NULL;
	bool options_end = false;

	for (int i = 1; i < cursor; i++) {
		const char *word = words[i];
		if (!options_end && strcmp(word, "--") == 0) {
			options_end = true;
			continue;
		}
		if (options_end || word[0] != '-' || !word[1]) {
			if (command->wraps_command) {
				printf(":command %d\n", i + 1);
				return;
			}
			if (!path)
				path = word;
			continue;
		}
		const char *name = word + strspn(word, "-");
		const struct command_option *option = options_find(command, name, strlen(name));
		if (!option || !option->value)
			continue;
		int value = i + 1 + is_equals(i + 1, count, words);
		if (value > cursor || (value == cursor + 1 && is_equals(cursor, count, words)))
			prefix = "";
		if (value >= cursor) {
			offer_value(option, prefix, path);
			return;
		}
		/* NAME, "=", VALUE */
		if (option->kind == OPTION_SETTING && is_equals(value + 1, count, words)) {
			if (cursor <= value + 2) {
				offer_settings(cursor == value + 1 ? "" : prefix, words[value]);
				return;
			}
			value += 2;
		}
		i = value;
	}
	if (!options_end && prefix[0] == '-')
		offer_options(prefix, command);
	else if (command->wraps_command)
		printf(":command %d\n", cursor + 1);
	else
		puts(":files");
}

int complete_words(int cursor, int count, char **words)
{
	const struct command *command;

	cursor--; /* bash counts the command's own name */
	if (cursor > count || cursor < 0)
		return COMMAND_MISUSED;
	if (cursor > 0) {
		command = command_find(words[0]);
		if (command)
			offer_arguments(command, cursor, count, words);
		return COMMAND_FINE;
	}
	for (size_t i = 0; (command = command_at(i)); i++)
		offer(count ? words[0] : "", "", command->name, "");
	offer(count ? words[0] : "", "--", "help", "");
	offer(count ? words[0] : "", "--", "version", "");
	return COMMAND_FINE;
}
