/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof mcp: a server of the Model Context Protocol on standard input and output, for coding agents.
 *
 * A message is a line of JSON-RPC. SQLite's JSON functions read it, and refuse deep nesting.
 * Requests are answered one after the other, and none depends on an earlier one. Clients of the revision
 * 2026-07-28 name the revision in each request. Older clients begin with `initialize`. The answers are the
 * same.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/file/run_sql.h"
#include "cmd/line/command.h"
#include "cmd/mcp/folders.h"
#include "cmd/mcp/tools.h"
#include "queryprof.h"

#define LINE_MAX_BYTES (1 << 20)
#define ID_MAX_BYTES 256

/* The supported revisions of the protocol: first the current one, then those with `initialize`, the newest
 * first. */
static const char *const revisions[] = { "2026-07-28", "2025-11-25", "2025-06-18" };
#define REVISIONS "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\"]"

#define SERVER "{\"name\":\"queryprof\",\"version\":\"" QUERYPROF_VERSION "\"}"
#define COMPLETE "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER "}"
#define FOR_AN_HOUR ",\"ttlMs\":3600000,\"cacheScope\":\"public\""

#define INSTRUCTIONS                                                                                         \
	"queryprof shows where the time of a program's SQLite queries goes, from a recording (trace file). " \
	"Make one: queryprof record -o app.trace -- COMMAND. Begin with findings: it names the cause, the "  \
	"evidence and the cure. [01234567] is the id of a statement: pass it as `statement` to plan, "       \
	"callers or findings. advise proves an index on a copy of the database, analyze another way to "     \
	"write a statement. After a change, record again and compare with diff. A time of a part of a "      \
	"statement is from samples and has a standard error; counts and times of whole statements are "      \
	"exact."

enum {
	PARSE_ERROR = -32700,
	BAD_REQUEST = -32600,
	NO_METHOD = -32601,
	BAD_PARAMETERS = -32602,
	BAD_REVISION = -32022
};

#define META "$.params._meta.\"io.modelcontextprotocol/"

/* The decisive parts of a message. */
#define SELECT_HEAD                                                                                          \
	"SELECT json_type(m), m ->> '$.jsonrpc', json_type(m, '$.id'), m -> '$.id', json_type(m, "           \
	"'$.method'), m ->> '$.method', json_type(m, '$.params'), coalesce(json_type(m, '$.result'), "       \
	"json_type(m, '$.error')), json_type(m, '" META "protocolVersion\"'), m ->> '" META                  \
	"protocolVersion\"', json_type(m, '" META                                                            \
	"clientCapabilities\"'), m ->> '$.params.protocolVersion', "                                         \
	"m ->> '$.params.name', json_type(m, '$.params.arguments') FROM (SELECT json(?1) AS m)"

enum head {
	KIND,
	JSONRPC,
	ID_KIND,
	ID,
	METHOD_KIND,
	METHOD,
	PARAMETERS_KIND,
	ANSWER_KIND,
	REVISION_KIND,
	REVISION,
	CAPABILITIES_KIND,
	WANTED_REVISION,
	TOOL,
	ARGUMENTS_KIND
};

#define SELECT_ARGUMENTS "SELECT key, type, atom FROM json_each(json_extract(?1, '$.params.arguments'))"

static sqlite3_stmt *head, *arguments;

/* "" if it is missing. */
static const char *value(enum head column)
{
	return run_sql_text(head, column);
}

/* --- answers --------------------------------------------------------------------------------------- */

static void begin(void)
{
	fputs("{\"jsonrpc\":\"2.0\",\"id\":", stdout);
}

static void end(void)
{
	fputs("}\n", stdout);
	fflush(stdout);
}

/* Refuses the message whose head was read. has_id false: its id is not known. data: JSON, or NULL. */
static void refuse(bool has_id, int code, const char *message, const char *data)
{
	begin();
	if (has_id)
		json_write_made(stdout, value(ID), SIZE_MAX);
	else
		fputs("null", stdout);
	printf(",\"error\":{\"code\":%d,\"message\":", code);
	json_write_text(stdout, message, "");
	if (data)
		printf(",\"data\":%s", data);
	putchar('}');
	end();
}

/* Sends these members of a result, with COMPLETE. */
static void answer(const char *members)
{
	begin();
	json_write_made(stdout, value(ID), SIZE_MAX);
	printf(",\"result\":{%s%s}", COMPLETE, members);
	end();
}

static void answer_list(void)
{
	char *list = NULL;
	size_t size;
	FILE *to = open_memstream(&list, &size);

	fputs(",\"tools\":", to);
	tools_write_list(to);
	fputs(FOR_AN_HOUR, to);
	fclose(to);
	answer(list);
	free(list);
}

/* The revision that the client wants, if supported, with `initialize`. */
static void answer_initialize(void)
{
	char members[sizeof(INSTRUCTIONS) + 256];
	const char *revision =
		strcmp(value(WANTED_REVISION), revisions[2]) == 0 ? revisions[2] : revisions[1];

	snprintf(members, sizeof(members),
	         ",\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER
	         ",\"instructions\":\"" INSTRUCTIONS "\"",
	         revision);
	answer(members);
}

static void answer_call(const char *line)
{
	const struct tool *tool = tools_find(value(TOOL));
	char *text = NULL, *members = NULL;
	size_t size;
	FILE *to;
	bool has_failed;

	if (!tool) {
		refuse(true, BAD_PARAMETERS, "there is no such tool; tools/list lists the tools", NULL);
		return;
	}
	if (strcmp(value(ARGUMENTS_KIND), "object") != 0 && *value(ARGUMENTS_KIND)) {
		refuse(true, BAD_PARAMETERS, "arguments must be an object", NULL);
		return;
	}
	sqlite3_reset(arguments);
	sqlite3_bind_text(arguments, 1, line, -1, SQLITE_STATIC);
	to = open_memstream(&text, &size);
	has_failed = tools_call(tool, arguments, to);
	fclose(to);
	sqlite3_reset(arguments);
	to = open_memstream(&members, &size);
	fputs(",\"content\":[{\"type\":\"text\",\"text\":", to);
	json_write_text(to, text, "");
	fprintf(to, "}],\"isError\":%s", has_failed ? "true" : "false");
	fclose(to);
	answer(members);
	free(text);
	free(members);
}

/* --- requests ---------------------------------------------------------------------------------------- */

static const char *const discovered =
	",\"supportedVersions\":" REVISIONS
	",\"capabilities\":{\"tools\":{}},\"instructions\":\"" INSTRUCTIONS "\"" FOR_AN_HOUR;

static bool is_spoken(const char *revision)
{
	for (size_t i = 0; i < sizeof(revisions) / sizeof(*revisions); i++)
		if (strcmp(revisions[i], revision) == 0)
			return true;
	return false;
}

/* False: an answer has refused it. */
static bool check_parameters(void)
{
	if (*value(PARAMETERS_KIND) && strcmp(value(PARAMETERS_KIND), "object") != 0)
		refuse(true, BAD_PARAMETERS, "params must be an object", NULL);
	else if (!*value(REVISION_KIND))
		return true; /* of a revision with `initialize` */
	else if (!is_spoken(value(REVISION)))
		refuse(true, BAD_REVISION, "Unsupported protocol version", "{\"supported\":" REVISIONS "}");
	else if (strcmp(value(CAPABILITIES_KIND), "object") != 0)
		refuse(true, BAD_PARAMETERS, "_meta has no io.modelcontextprotocol/clientCapabilities", NULL);
	else
		return true;
	return false;
}

static void answer_request(const char *line)
{
	const char *method = value(METHOD);

	if (!check_parameters())
		return;
	if (strcmp(method, "tools/call") == 0)
		answer_call(line);
	else if (strcmp(method, "tools/list") == 0)
		answer_list();
	else if (strcmp(method, "server/discover") == 0)
		answer(discovered);
	else if (strcmp(method, "initialize") == 0)
		answer_initialize();
	else if (strcmp(method, "ping") == 0)
		answer("");
	else
		refuse(true, NO_METHOD, "there is no such method; this server has tools only", NULL);
}

/* Answers a message that could be parsed. */
static void answer_message(const char *line)
{
	const char *id = value(ID_KIND);
	const bool has_id =
		(strcmp(id, "integer") == 0 || strcmp(id, "text") == 0) && strlen(value(ID)) <= ID_MAX_BYTES;

	if (strcmp(value(KIND), "array") == 0)
		refuse(false, BAD_REQUEST, "the protocol has no batches since 2025-06-18", NULL);
	else if (strcmp(value(KIND), "object") != 0 || strcmp(value(JSONRPC), "2.0") != 0)
		refuse(has_id, BAD_REQUEST, "expected an object with jsonrpc 2.0", NULL);
	else if (!*value(METHOD_KIND) && *value(ANSWER_KIND))
		; /* a response, although this server sends no requests */
	else if (strcmp(value(METHOD_KIND), "text") != 0)
		refuse(has_id, BAD_REQUEST, "method must be a string", NULL);
	else if (*id && !has_id)
		refuse(false, BAD_REQUEST, "id must be an integer, or a string of at most 256 bytes", NULL);
	else if (*id) /* else a notification */
		answer_request(line);
}

static bool is_utf8(const char *text, size_t size)
{
	for (size_t step; size; text += step, size -= step)
		if (!*text || !(step = text_character_within(text, size)))
			return false;
	return true;
}

static void answer_line(const char *line, size_t size)
{
	sqlite3_reset(head);
	sqlite3_bind_text(head, 1, line, (int)size, SQLITE_STATIC);
	if (!is_utf8(line, size) || sqlite3_step(head) != SQLITE_ROW)
		refuse(false, PARSE_ERROR, "the line is not JSON in UTF-8, or is nested too deeply", NULL);
	else
		answer_message(line);
	sqlite3_reset(head);
}

/* --- the loop --------------------------------------------------------------------------------------- */

/* Reads a line without its end. False: there are no more. *size: of the whole line, of which at most
 * LINE_MAX_BYTES are kept. */
static bool read_line(char *line, size_t *size)
{
	int c;

	*size = 0;
	while ((c = getchar_unlocked()) != EOF && c != '\n')
		if ((*size)++ < LINE_MAX_BYTES)
			line[*size - 1] = (char)c;
	line[*size < LINE_MAX_BYTES ? *size : LINE_MAX_BYTES] = 0;
	return *size || c == '\n';
}

static int serve(char *line)
{
	size_t size;

	while (read_line(line, &size)) {
		if (size && line[size - 1 < LINE_MAX_BYTES ? size - 1 : LINE_MAX_BYTES] == '\r')
			line[--size] = 0;
		if (size > LINE_MAX_BYTES)
			refuse(false, PARSE_ERROR, "the line is longer than 1 MiB", NULL);
		else if (size)
			answer_line(line, size);
	}
	return COMMAND_FINE;
}

static int run(int argc, char **argv)
{
	static char *here[] = { (char *)"." };
	char *line = malloc(LINE_MAX_BYTES + 1);
	sqlite3 *db = NULL;
	int result = argc ? folders_open(argc, argv) : folders_open(1, here);

	if (!result && (!line || sqlite3_open(":memory:", &db) != SQLITE_OK ||
	                sqlite3_prepare_v2(db, SELECT_HEAD, -1, &head, NULL) != SQLITE_OK ||
	                sqlite3_prepare_v2(db, SELECT_ARGUMENTS, -1, &arguments, NULL) != SQLITE_OK))
		result = complain("mcp: %s", db ? sqlite3_errmsg(db) : "out of memory");
	if (!result)
		result = serve(line);
	sqlite3_finalize(head);
	sqlite3_finalize(arguments);
	sqlite3_close(db);
	free(line);
	return result;
}

static const struct command_option options[] = { { 0 } };

const struct command command_mcp = {
	.name = "mcp",
	.arguments = "[DIR]...",
	.summary = "Serves trace files to coding agents (Model Context Protocol)",
	.details =
		"A server on standard input and output, for the protocol's revisions 2026-07-28, 2025-11-25 "
		"and 2025-06-18. An agent's program starts it and calls its tools: files, findings, "
		"top_statements, plan, locks, wal, callers, diff, sql, advise, analyze. An answer has fewer "
		"than "
		"2,000 characters, and contains ids of statements for further questions.\n\n"
		"The server reads trace files and databases that belong to its user, in a DIR or below it. "
		"Without DIR, "
		"it uses the current folder. It refuses symbolic links, .. and other users' files. SQL can "
		"only read the one trace file. advise and analyze run statements on a private copy of a "
		"database that no process has open. An answer takes at most 20 s, of these two 40 s. Answers "
		"contain the text of "
		"queries, so the agent's provider gets it.",
	.examples = "  queryprof mcp ~/recordings\n"
		    "  claude mcp add queryprof -- queryprof mcp /srv/recordings\n",
	.options = options,
	.arguments_max = INT_MAX,
	.run = run,
};
