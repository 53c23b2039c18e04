/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof top: once a second, the content of `dump`, and the statements and waits of the last seconds.
 * The trace file stays open between two looks, without a transaction. If no other process had it open, it was
 * opened as immutable (cmd/file/trace_file.c), and the next look opens it again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/live/page.h"
#include "cmd/live/processes.h"
#include "cmd/live/screen.h"
#include "cmd/live/snapshot.h"
#include "cmd/ui/progress.h"
#include "cmd/ui/terminal.h"

static const char *once;

static const struct command_option options[] = {
	COMMAND_FLAG("once", &once, "plain text, once; the default if the output is not a terminal"),
	{ 0 },
};

struct top {
	struct live live;
	sqlite3 *db;
	bool is_constant; /* db */
	struct snapshot snapshot;
	struct page page;
	enum page_order order;
	bool is_frozen;
	size_t chosen; /* a line of the page */
	size_t first;  /* of the lines that are shown: of a statement's page */
	/* The statement that is open; NULL: the recording is. */
	char *query;
	int64_t hash;
};

/* --- a page ------------------------------------------------------------------------------------ */

static bool open_db(struct top *top)
{
	if (top->db && !top->is_constant)
		return true;
	if (top->db)
		trace_file_close(top->db);
	top->is_constant = !trace_file_is_in_use(top->live.path);
	top->db = trace_file_open(top->live.path);
	return top->db != NULL;
}

/* The present state, as a page of that many rows and columns. A command_result. */
static int refresh(struct top *top, int rows, int columns)
{
	int code;

	if (!top->is_frozen || !top->db) {
		live_inspect(&top->live);
		if (!open_db(top))
			return COMMAND_FAILED;
		code = snapshot_take(top->db, &top->live, &top->snapshot);
		if (code)
			return complain("top: %s: %s", top->live.path, sqlite3_errmsg(top->db));
	}
	code = top->query ? page_of_statement(&top->page, top->db, &top->snapshot, top->hash, top->query,
	                                      columns)
	                  : page_of_recording(&top->page, top->db, &top->live, &top->snapshot, top->order,
	                                      rows, columns);
	/* If another process has locked the file for seconds, the next look tries again. */
	if (code && (code & 0xff) != SQLITE_BUSY)
		return complain("top: %s: %s", top->live.path, sqlite3_errmsg(top->db));
	return COMMAND_FINE;
}

static void top_free(struct top *top)
{
	page_clear(&top->page);
	vector_free(&top->page.lines);
	if (top->db)
		trace_file_close(top->db);
	live_close(&top->live);
	free(top->query);
}

/* --- plain text ------------------------------------------------------------------------------------ */

static int print_once(struct top *top)
{
	const int result = refresh(top, 0, 0);

	for (size_t i = 0; !result && i < top->page.lines.count; i++) {
		const char *text = top->page.lines.items[i].text;

		terminal_print_cut(text, strlen(text), terminal_room(0), false);
		putchar('\n');
	}
	return result;
}

/* --- the screen --------------------------------------------------------------------------------------- */

/* The nearest line from `from` on, in that direction, that can be opened; `from` if there is none. */
static size_t choose(const struct top *top, size_t from, int step)
{
	for (size_t at = from; at < top->page.lines.count; at += (size_t)step)
		if (top->page.lines.items[at].is_statement)
			return at;
	return top->chosen;
}

static void draw(struct top *top)
{
	const struct screen_size size = screen_size();
	const size_t rows = (size_t)size.rows, body = rows > 1 ? rows - 1 : 1;
	struct screen_line *lines = calloc(rows, sizeof(*lines));
	size_t count = top->page.lines.count;

	if (!lines)
		return;
	if (!top->query && (top->chosen >= count || !top->page.lines.items[top->chosen].is_statement))
		top->chosen = choose(top, 0, 1);
	if (top->first >= count)
		top->first = count ? count - 1 : 0;
	/* A page of a recording fits; on a low screen its chosen line does. */
	if (!top->query)
		top->first = top->chosen >= body ? top->chosen - body + 1 : 0;
	for (size_t i = 0; i < body; i++) {
		const size_t at = top->first + i;

		lines[i].text = at < count ? top->page.lines.items[at].text : "";
		lines[i].is_reversed = !top->query && at == top->chosen && at < count &&
		                       top->page.lines.items[at].is_statement;
	}
	if (rows > 1)
		lines[body] = (struct screen_line){
			top->query       ? "q quit  esc back  up/down scroll  space freeze"
			: top->is_frozen ? "FROZEN  q quit  space continue  up/down enter open  s sort"
					 : "q quit  space freeze  up/down enter open  s sort",
			false
		};
	screen_draw(lines, rows);
	free(lines);
}

static void open_statement(struct top *top)
{
	const struct page_line *line =
		top->chosen < top->page.lines.count ? &top->page.lines.items[top->chosen] : NULL;

	if (top->query || !line || !line->is_statement)
		return;
	top->query = strdup(line->query);
	top->hash = line->hash;
	top->first = 0;
}

static void close_statement(struct top *top)
{
	free(top->query);
	top->query = NULL;
	top->first = 0;
}

static void move(struct top *top, int step)
{
	if (!top->query)
		top->chosen = choose(top, top->chosen + (size_t)step, step);
	else if (step > 0 && top->first + 1 < top->page.lines.count)
		top->first++;
	else if (step < 0 && top->first)
		top->first--;
}

/* Handles a key. False: it ends the command. *looks: the page is another one now. */
static bool handle_key(struct top *top, enum screen_key key, char character, bool *looks)
{
	*looks = key == KEY_NONE || key == KEY_RESIZE || key == KEY_ENTER || key == KEY_ESCAPE ||
	         key == KEY_CHARACTER;
	switch (key) {
	case KEY_END: return false;
	case KEY_UP: move(top, -1); break;
	case KEY_DOWN: move(top, 1); break;
	case KEY_ENTER: open_statement(top); break;
	case KEY_ESCAPE: close_statement(top); break;
	case KEY_CHARACTER:
		switch (character) {
		case 'q': return false;
		case ' ':
		case 'f': top->is_frozen = !top->is_frozen; break;
		case 's': top->order = (enum page_order)((top->order + 1) % PAGE_ORDERS); break;
		case 'k': move(top, -1); break;
		case 'j': move(top, 1); break;
		case 'b': close_statement(top); break;
		default: break;
		}
		break;
	default: break;
	}
	return true;
}

static int show(struct top *top)
{
	bool looks = true, goes_on = true;
	uint64_t next_ns = 0;
	int result = COMMAND_FINE;
	char character = 0;

	progress_stop();
	complain_hold(); /* there is no place for it until the end */
	while (goes_on && !result) {
		const struct screen_size size = screen_size();

		if (looks)
			result = refresh(top, size.rows, size.columns);
		if (clock_ns(CLOCK_MONOTONIC) >= next_ns)
			next_ns = clock_ns(CLOCK_MONOTONIC) + NS_PER_S;
		if (!result) {
			draw(top);
			enum screen_key key = screen_key(next_ns, &character);
			goes_on = handle_key(top, key, character, &looks);
		}
	}
	screen_close();
	char *complaints = complain_detach();
	if (complaints && result)
		complain("%s", complaints);
	free(complaints);
	return result;
}

static int run(int argc, char **argv)
{
	struct top top = { .order = ORDER_WALL };
	int result = live_open("top", argv[0], &top.live, NULL);

	(void)argc;
	if (result)
		return result;
	result = once || !screen_open() ? print_once(&top) : show(&top);
	top_free(&top);
	return result;
}

const struct command command_top = {
	.name = "top",
	.arguments = "[PID|FILE] [OPTION]...",
	.summary = "Shows what recorded programs do, once a second",
	.details =
		"PID and FILE are as in dump, and top reads them in the same way. The upper part shows what "
		"is open: queries, each below the holder of the lock that it waits for, then transactions "
		"with the size of the WAL. The lower part shows the waits and the statements of the last "
		"ten seconds, by samples: `wall` is the time inside SQLite, `cpu` the part on a processor, "
		"`lock` the part in which it waited for locks of databases. Samples reach the trace file "
		"about half a second later.\n\n"
		"Keys: up and down (or k and j) choose a query, enter opens it: its plan with the time of "
		"each node, and its stacks. Escape (or b) goes back. s changes the order of the statements, "
		"space freezes the page, q quits.\n\n"
		"If the output is not a terminal, or with --once, top prints the page once.",
	.examples = "  queryprof top app.trace\n"
		    "  queryprof top 4321 --once\n",
	.options = options,
	.reads_file = true,
	.arguments_max = 1,
	.run = run,
};
