/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/read/plan_sides.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/file/run_sql.h"
#include "cmd/line/command.h"
#include "cmd/ui/terminal.h"
#include "sql_diff_plan_pairs.h"

#define LINES_MAX 200 /* of a plan; the rest is left out */
#define WIDTH_LEAST 20
#define WIDTH_MOST 70
#define BETWEEN 3 /* columns between the sides, with a sign */

struct line {
	const char *text;
	size_t size;
};

struct plan {
	struct line lines[LINES_MAX];
	int count;
};

static void split(struct plan *plan, const char *text)
{
	for (plan->count = 0; *text && plan->count < LINES_MAX; text += *text == '\n') {
		const size_t size = strcspn(text, "\n");

		plan->lines[plan->count++] = (struct line){ text, size };
		text += size;
	}
}

static bool are_equal(const struct line *a, const struct line *b)
{
	return a->size == b->size && !memcmp(a->text, b->text, a->size);
}

/* --- what changed, in words ----------------------------------------------------------------------- */

/* The name of the index in the line; size 0: none. */
static struct line index_of(const struct line *line)
{
	static const char *const marks[] = { " USING INDEX ", " USING COVERING INDEX " };
	struct line name = { NULL, 0 };
	const char *found = NULL;

	for (size_t i = 0; !found && i < sizeof(marks) / sizeof(*marks); i++)
		if ((found = memmem(line->text, line->size, marks[i], strlen(marks[i]))))
			name.text = found + strlen(marks[i]);
	if (found)
		name.size = (size_t)(line->text + line->size - name.text);
	for (size_t i = 0; i < name.size; i++)
		if (name.text[i] == ' ')
			name.size = i;
	return name;
}

static bool uses(const struct plan *plan, const struct line *index)
{
	for (int i = 0; i < plan->count; i++) {
		const struct line other = index_of(&plan->lines[i]);

		if (are_equal(index, &other))
			return true;
	}
	return false;
}

static bool has(const struct plan *plan, const struct line *line)
{
	for (int i = 0; i < plan->count; i++)
		if (are_equal(&plan->lines[i], line))
			return true;
	return false;
}

/* Writes the indexes of one plan that the other one does not use. */
static void write_indexes(FILE *to, const struct plan *plan, const struct plan *other, const char *what)
{
	for (int i = 0; i < plan->count; i++) {
		const struct line index = index_of(&plan->lines[i]);

		/* A virtual table has a number and a text there. An automatic index has no name. */
		if (!index.size || memchr(index.text, ':', index.size) || *index.text == '(' ||
		    uses(other, &index) ||
		    memmem(plan->lines[i].text, plan->lines[i].size, " VIRTUAL TABLE ", 15))
			continue;
		fprintf(to, "%sindex %.*s is %s", ftell(to) > 0 ? "; " : "", (int)index.size, index.text,
		        what);
	}
}

static bool have_same_lines(const struct plan *a, const struct plan *b)
{
	for (int i = 0; i < a->count; i++)
		if (!has(b, &a->lines[i]))
			return false;
	for (int i = 0; i < b->count; i++)
		if (!has(a, &b->lines[i]))
			return false;
	return true;
}

static int count_of(const struct plan *plan, const char *word)
{
	int count = 0;

	for (int i = 0; i < plan->count; i++)
		count += memmem(plan->lines[i].text, plan->lines[i].size, word, strlen(word)) != NULL;
	return count;
}

static void write_words(FILE *to, const struct plan *a, const struct plan *b, const char *version_a,
                        const char *version_b)
{
	static const struct {
		const char *word, *name;
	} counted[] = { { "AUTOMATIC", "automatic indexes" }, { "USE TEMP B-TREE", "sorts" } };

	if (strcmp(version_a, version_b) != 0 && *version_a && *version_b)
		fprintf(to, "SQLite %s, then %s", version_a, version_b);
	write_indexes(to, a, b, "no longer used");
	write_indexes(to, b, a, "used now");
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
		const int before = count_of(a, counted[i].word), after = count_of(b, counted[i].word);

		if (before != after)
			fprintf(to, "%s%s: %d, then %d", ftell(to) > 0 ? "; " : "", counted[i].name, before,
			        after);
	}
	if (have_same_lines(a, b))
		fprintf(to, "%sthe order of the loops", ftell(to) > 0 ? "; " : "");
}

static void print_words(const struct plan *a, const struct plan *b, const char *version_a,
                        const char *version_b)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (to)
		write_words(to, a, b, version_a, version_b);
	if (to && fclose(to) == 0 && size) {
		printf("changed: ");
		terminal_print(text, size, 0, INT_MAX);
		putchar('\n');
	}
	free(text);
}

/* --- side by side ------------------------------------------------------------------------------------- */

static void print_pair(const struct line *a, const struct line *b, char sign, int width)
{
	const int printed = a ? terminal_print_cut(a->text, a->size, width, true) : 0;

	if (!b) {
		terminal_print_padding(width - printed);
		printf(" %c\n", sign);
		return;
	}
	terminal_print_padding(width - printed);
	printf(" %c ", sign);
	terminal_print_cut(b->text, b->size, terminal_room(width + BETWEEN), true);
	putchar('\n');
}

/* common[i][j]: how many lines the two plans have in common, in order, from line i of A and line j of B on.
 */
typedef short common_lines[LINES_MAX + 1][LINES_MAX + 1];

static void find_common(const struct plan *a, const struct plan *b, common_lines common)
{
	for (int i = a->count; i >= 0; i--)
		for (int j = b->count; j >= 0; j--) {
			if (i == a->count || j == b->count)
				common[i][j] = 0;
			else if (are_equal(&a->lines[i], &b->lines[j]))
				common[i][j] = (short)(common[i + 1][j + 1] + 1);
			else
				common[i][j] = common[i + 1][j] >= common[i][j + 1] ? common[i + 1][j]
				                                                    : common[i][j + 1];
		}
}

/* Lines in common are next to each other. Of those between them, the first are, too, with the sign | for
 * another line. The signs < and > are for a line that has none next to it. */
static void print_lines(const struct plan *a, const struct plan *b, common_lines common, int width)
{
	for (int i = 0, j = 0; i < a->count || j < b->count;) {
		int end_i = i, end_j = j;

		while (end_i < a->count || end_j < b->count) {
			if (end_i < a->count && end_j < b->count &&
			    are_equal(&a->lines[end_i], &b->lines[end_j]))
				break;
			if (end_j == b->count ||
			    (end_i < a->count && common[end_i + 1][end_j] >= common[end_i][end_j + 1]))
				end_i++;
			else
				end_j++;
		}
		for (; i < end_i || j < end_j; i += i < end_i, j += j < end_j)
			print_pair(i < end_i ? &a->lines[i] : NULL, j < end_j ? &b->lines[j] : NULL,
			           i == end_i   ? '>'
			           : j == end_j ? '<'
			                        : '|',
			           width);
		for (; i < a->count && j < b->count && are_equal(&a->lines[i], &b->lines[j]); i++, j++)
			print_pair(&a->lines[i], &b->lines[j], ' ', width);
	}
}

static int width_of(const struct plan *plan, const struct line *heading)
{
	const int half = terminal_width() ? (terminal_width() - BETWEEN) / 2 : WIDTH_MOST;
	const int most = half < WIDTH_LEAST ? WIDTH_LEAST : half > WIDTH_MOST ? WIDTH_MOST : half;
	int width = terminal_measure(heading->text, heading->size);

	for (int i = 0; i < plan->count; i++) {
		const int wanted = terminal_measure(plan->lines[i].text, plan->lines[i].size);

		width = wanted > width ? wanted : width;
	}
	return width > most ? most : width;
}

int plan_sides_print(sqlite3 *both, const char *limit)
{
	enum { STATEMENT, QUERY, PLAN_A, PLAN_B, VERSION_A, VERSION_B, TIME_A, TIME_B };
	const struct sql_parameter parameters[] = { { ":limit", limit }, { NULL, NULL } };
	common_lines *common = malloc(sizeof(*common));
	struct plan *plans = malloc(2 * sizeof(*plans));
	sqlite3_stmt *row = NULL;
	int code = common && plans ? sqlite3_prepare_v2(both, sql_diff_plan_pairs, -1, &row, NULL)
	                           : SQLITE_NOMEM;

	if (!code)
		run_sql_bind(row, parameters);
	for (int found = 0; !code && (code = sqlite3_step(row)) == SQLITE_ROW; found++, code = SQLITE_OK) {
		char headings[2][80];
		struct line heads[2];

		split(&plans[0], run_sql_text(row, PLAN_A));
		split(&plans[1], run_sql_text(row, PLAN_B));
		for (int side = 0; side < 2; side++) {
			snprintf(headings[side], sizeof(headings[side]), "%c: %s a run", "AB"[side],
			         run_sql_text(row, side ? TIME_B : TIME_A));
			heads[side] = (struct line){ headings[side], strlen(headings[side]) };
		}
		const int width = width_of(&plans[0], &heads[0]);
		const char *query = run_sql_text(row, QUERY);

		printf("%s\n[%.8s] ", found ? "" : "\nPlans that differ, side by side\n",
		       run_sql_text(row, STATEMENT));
		terminal_print_cut(query, strlen(query), terminal_room(11), false);
		putchar('\n');
		print_words(&plans[0], &plans[1], run_sql_text(row, VERSION_A), run_sql_text(row, VERSION_B));
		print_pair(&heads[0], &heads[1], ' ', width);
		find_common(&plans[0], &plans[1], *common);
		print_lines(&plans[0], &plans[1], *common, width);
	}
	sqlite3_finalize(row);
	free(common);
	free(plans);
	return code == SQLITE_DONE ? COMMAND_FINE
	                           : complain("the plans cannot be compared: %s", sqlite3_errmsg(both));
}
