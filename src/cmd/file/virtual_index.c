/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/file/virtual_index.h"

#include <stdlib.h>
#include <string.h>

/* FTS5: flags, and a letter for each constraint, with the number of a column after some of them. */
#define FTS5_BY_RANK 32
#define FTS5_BY_ROWID 64
#define FTS5_DESCENDING 128

static bool write_fts5(FILE *to, long flags, const char *code)
{
	static const struct {
		char letter;
		const char *words;
	} constraints[] = { { 'M', "MATCH" },     { 'r', "rank" },      { 'L', "LIKE" },
		            { 'G', "GLOB" },      { '=', "rowid = ?" }, { '<', "rowid <= ?" },
		            { '>', "rowid >= ?" } };
	const size_t count = sizeof(constraints) / sizeof(*constraints);
	const char *between = "full text: ";

	if (!*code || flags & ~(FTS5_BY_RANK | FTS5_BY_ROWID | FTS5_DESCENDING))
		return false;
	if (*code >= '0' && *code <= '9')
		return false;
	for (const char *at = code; *at; at++)
		if (!strchr("MrLG=<>0123456789", *at))
			return false;
	for (const char *at = code; *at; at++)
		for (size_t i = 0; i < count; i++)
			if (constraints[i].letter == *at) {
				fprintf(to, "%s%s", between, constraints[i].words);
				between = " and ";
			}
	if (flags & FTS5_BY_RANK)
		fputs(", scores each match to give them by rank", to);
	else if (flags & FTS5_BY_ROWID)
		fprintf(to, ", by rowid%s", flags & FTS5_DESCENDING ? " descending" : "");
	return true;
}

/* R-Tree: 2, and for each constraint a letter and the coordinate, from '0' on. */
static bool write_rtree(FILE *to, long number, const char *code)
{
	static const char *const operators[] = { "=", "<=", "<", ">=", ">" };
	const char *between = "R-Tree: coordinate";

	if (number != 2 || !*code || strlen(code) % 2)
		return false;
	for (const char *at = code; *at; at += 2)
		if (at[0] < 'A' || at[0] > 'E' || at[1] < '0' || at[1] > '9')
			return false;
	for (const char *at = code; *at; at += 2) {
		fprintf(to, "%s %d %s ?", between, at[1] - '0' + 1, operators[at[0] - 'A']);
		between = ",";
	}
	return true;
}

bool virtual_index_write(FILE *to, const char *detail)
{
	const char *at = strstr(detail, VIRTUAL_INDEX);
	char *end = NULL;
	const long number = at ? strtol(at + strlen(VIRTUAL_INDEX), &end, 10) : 0;

	if (!at || *end != ':')
		return false;
	return write_rtree(to, number, end + 1) || write_fts5(to, number, end + 1);
}
