/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn takes stack by stack in the order of their rows, and each address once. It looks
 * all of them up first, without a lock on the file, and stores the result in one
 * transaction.
 */
#include "frames/embed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/vector.h"
#include "store/store.h"
#include "symbol/perf_map.h"
#include "symbol/symbol.h"
#include "frames/module_rows.h"

#define STACKS_A_TURN "256"
#define STACK_TEXT_MAX "10755" /* STACK_FRAMES_MAX of 21 characters, and the brackets */
#define SEEN_MAX (1 << 18)

/* --- statements ------------------------------------------------------------------ */

enum statement {
	/* No row if a stack is not an array: in a damaged file, others may be intact. */
	NEXT_ADDRESS,
	MODULES,
	KNOWN,
	ONLY_PROCESS,
	OWNERS,
	FIND_NAME,
	ADD_NAME,
	FORGET,
	ADD_FRAME,
	STATEMENTS,
};

static const char *const statement_sql[STATEMENTS] = {
	[NEXT_ADDRESS] = "SELECT k.id, a.value FROM ("
			 "SELECT id, iif(length(trace) <= " STACK_TEXT_MAX
			 " AND json_valid(trace), trace, '[]') AS trace FROM stacks WHERE id > ?1"
			 " ORDER BY id LIMIT " STACKS_A_TURN ") AS k"
			 " LEFT JOIN json_each(k.trace) AS a ON a.type = 'integer'",
	[MODULES] = MODULE_ROWS,
	[KNOWN] = "SELECT 1 + (file > 0) FROM frames WHERE address = ?1 AND level = 0",
	[ONLY_PROCESS] = "SELECT process_id, start_time_ns FROM processes WHERE hostname = ?2"
			 " AND (SELECT count(*) FROM processes) = 1",
	[OWNERS] = "SELECT process_id, start_time_ns, hostname = ?2 FROM temp.embed_owners"
		   " JOIN processes ON processes.id = process WHERE stack = ?1",
	[FIND_NAME] = "SELECT id FROM names WHERE name = ?1",
	[ADD_NAME] = "INSERT INTO names (name) VALUES (?1)",
	[FORGET] = "DELETE FROM frames WHERE address = ?1",
	[ADD_FRAME] = "INSERT INTO frames (address, level, inlined, function, symbol, file, line)"
		      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
};

/* The frames of one address; their strings belong to symbol.h. */
struct finding {
	uint64_t address;
	struct symbol_frame *frames;
	size_t count;
	char *generated; /* name of generated code, which is the only frame's */
};

/* One turn. */
struct turn {
	struct embed *embed;
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	VECTOR(struct finding) findings;
	struct module_map modules; /* of the file; read at the turn's first look-up */
	char hostname[HOST_NAME_MAX + 1];
};

static sqlite3_stmt *statement_of(struct turn *turn, enum statement which)
{
	sqlite3_stmt **statement = &turn->statements[which];

	if (!*statement)
		sqlite3_prepare_v2(turn->db, statement_sql[which], -1, statement, NULL);
	return *statement; /* SQLite's functions return an error for NULL */
}

/* The first column of the statement's row, 0 without a row. Resets the statement. */
static int64_t number_of(sqlite3_stmt *statement)
{
	int64_t number = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;

	sqlite3_reset(statement);
	return number;
}

/* --- looking up ------------------------------------------------------------------ */

/* 0: nothing is known about the address; 1: a name; 2: lines, too. */
static int64_t known(struct turn *turn, uint64_t address)
{
	sqlite3_stmt *statement = statement_of(turn, KNOWN);

	sqlite3_bind_int64(statement, 1, (int64_t)address);
	return number_of(statement);
}

/* The modules of the file, as of the snapshot that the statement of addresses reads. */
static int read_modules(struct turn *turn)
{
	sqlite3_stmt *row = statement_of(turn, MODULES);
	int code;

	while ((code = sqlite3_step(row)) == SQLITE_ROW)
		if (!module_rows_add(&turn->modules, row)) {
			code = SQLITE_NOMEM;
			break;
		}
	sqlite3_reset(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static size_t find_frames(struct turn *turn, uint64_t address, struct symbol_frame *frames)
{
	const struct module *module = module_map_find(&turn->modules, address);

	if (!module)
		return 0;
	const struct embed *embed = turn->embed;
	const struct symbol_object object = symbol_object_of(module);
	if (embed->look_up)
		return embed->look_up(embed->look_up_context, &object, address - module->bias, frames,
		                      SYMBOL_FRAMES_MAX);
	if (embed->can_wait)
		symbol_fetch(&object);
	return symbol_frames(&object, address - module->bias, frames, SYMBOL_FRAMES_MAX);
}

/* Makes the table of processes by stack, once, since that reads every sample. */
static bool has_owners(struct turn *turn)
{
	struct embed *embed = turn->embed;

	if (!embed->has_owners && embed->can_wait)
		embed->has_owners =
			sqlite3_exec(turn->db,
		                     "CREATE TEMP TABLE embed_owners AS SELECT DISTINCT stack, process FROM "
		                     "samples"
		                     " JOIN series ON series.id = series JOIN threads ON threads.id = thread;"
		                     "CREATE INDEX temp.embed_owners_by_stack ON embed_owners (stack)",
		                     NULL, NULL, NULL) == SQLITE_OK;
	return embed->has_owners;
}

/* Each process has its own generated code. Where several processes have the stack, the
 * address gets a name only if all of them ran on this machine and their maps agree.
 * malloc'ed. */
static char *find_generated(struct turn *turn, int64_t stack, uint64_t address)
{
	sqlite3_stmt *row = statement_of(turn, has_owners(turn) ? OWNERS : ONLY_PROCESS);
	bool agreed = true;
	char *name = NULL;

	sqlite3_bind_int64(row, 1, stack);
	sqlite3_bind_text(row, 2, turn->hostname, -1, SQLITE_STATIC);
	while (agreed && sqlite3_step(row) == SQLITE_ROW) {
		bool is_here = sqlite3_column_count(row) < 3 || sqlite3_column_int(row, 2);
		char *said = !is_here ? NULL
		                      : perf_map_name(sqlite3_column_int64(row, 0),
		                                      sqlite3_column_int64(row, 1), address & ~STORE_NOWHERE);
		agreed = said && (!name || strcmp(name, said) == 0);
		free(name);
		name = said;
	}
	sqlite3_reset(row);
	if (agreed)
		return name;
	free(name);
	return NULL;
}

/* SQLITE_OK or SQLITE_NOMEM. */
static int look_up(struct turn *turn, int64_t stack, uint64_t address)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	struct finding *finding;
	char *generated = NULL;
	size_t count = 0;

	if (!turn->modules.count) {
		int code = read_modules(turn);
		if (code)
			return code;
	}
	if (address & STORE_NOWHERE) {
		generated = find_generated(turn, stack, address);
		frames[0] = (struct symbol_frame){ .function = generated };
		count = generated != NULL;
	} else {
		count = find_frames(turn, address, frames);
	}
	if (!count)
		return SQLITE_OK;
	struct symbol_frame *kept = malloc(count * sizeof(*kept));
	if (!kept || !(finding = vector_add(&turn->findings))) {
		free(kept);
		free(generated);
		return SQLITE_NOMEM;
	}
	memcpy(kept, frames, count * sizeof(*kept));
	*finding = (struct finding){ address, kept, count, generated };
	return SQLITE_OK;
}

/* SQLITE_OK or an error; *more when the budget ended it. */
static int look_up_some(struct turn *turn, int64_t deadline_ns, int64_t *stack, bool *more)
{
	struct embed *embed = turn->embed;
	sqlite3_stmt *row = statement_of(turn, NEXT_ADDRESS);
	int code;

	*more = false;
	sqlite3_bind_int64(row, 1, embed->stack);
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		uint64_t address = (uint64_t)sqlite3_column_int64(row, 1);
		struct hash key = hash_words(&address, 1);

		if (sqlite3_column_int64(row, 0) != *stack) {
			/* One at least, however slow. */
			if (*stack > embed->stack && (int64_t)clock_ns(CLOCK_MONOTONIC) >= deadline_ns) {
				*more = true;
				code = SQLITE_DONE;
				break;
			}
			*stack = sqlite3_column_int64(row, 0);
		}
		if (sqlite3_column_type(row, 1) == SQLITE_NULL || hash_table_find(&embed->seen, key))
			continue;
		hash_table_add(&embed->seen, key); /* without memory it is looked up again */
		if (known(turn, address) == 2)
			continue;
		code = look_up(turn, *stack, address);
		if (code)
			break;
	}
	sqlite3_reset(row);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* --- storing --------------------------------------------------------------------- */

/* Replaces control characters, which a terminal would obey. */
static char *clean(const char *text)
{
	char *copy = strdup(text);

	for (char *at = copy; at && *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	return copy;
}

/* The row of the name, > 0; minus SQLite's error. */
static int64_t store_name(struct turn *turn, const char *name)
{
	char *text = clean(name);
	sqlite3_stmt *find = statement_of(turn, FIND_NAME), *add = statement_of(turn, ADD_NAME);

	if (!text)
		return -SQLITE_NOMEM;
	sqlite3_bind_text(find, 1, text, -1, SQLITE_STATIC);
	int64_t row = number_of(find);
	if (!row) {
		sqlite3_bind_text(add, 1, text, -1, SQLITE_STATIC);
		int code = sqlite3_step(add);
		row = code == SQLITE_DONE ? sqlite3_last_insert_rowid(turn->db) : -code;
		sqlite3_reset(add);
	}
	free(text);
	return row;
}

static int store_frame(struct turn *turn, uint64_t address, int level, const struct symbol_frame *frame)
{
	char *source = frame->function ? symbol_demangle_distinct(frame->function) : NULL;
	const char *texts[] = { source ? source : frame->function, frame->function, frame->file };
	sqlite3_stmt *add = statement_of(turn, ADD_FRAME);
	int code = SQLITE_DONE;

	for (int i = 0; i < 3 && code == SQLITE_DONE; i++) {
		int64_t row = texts[i] ? store_name(turn, texts[i]) : 0;
		sqlite3_bind_int64(add, 4 + i, row);
		if (row < 0)
			code = (int)-row;
	}
	free(source);
	if (code != SQLITE_DONE)
		return code;
	sqlite3_bind_int64(add, 1, (int64_t)address);
	sqlite3_bind_int(add, 2, level);
	sqlite3_bind_int(add, 3, frame->is_inlined);
	sqlite3_bind_int(add, 7, frame->line);
	code = sqlite3_step(add);
	sqlite3_reset(add);
	return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int store_finding(struct turn *turn, const struct finding *finding)
{
	int code = SQLITE_OK;

	/* Another process may have stored it meanwhile. */
	if (known(turn, finding->address) >= 1 + (finding->frames[0].file != NULL))
		return SQLITE_OK;
	sqlite3_stmt *forget = statement_of(turn, FORGET);
	sqlite3_bind_int64(forget, 1, (int64_t)finding->address);
	number_of(forget);
	for (size_t i = 0; !code && i < finding->count; i++)
		code = store_frame(turn, finding->address, (int)i, &finding->frames[i]);
	return code;
}

static int store_findings(struct turn *turn)
{
	int code = turn->findings.count ? sqlite3_exec(turn->db, "BEGIN IMMEDIATE", NULL, NULL, NULL)
	                                : SQLITE_OK;

	if (code || !turn->findings.count)
		return code;
	for (size_t i = 0; !code && i < turn->findings.count; i++)
		code = store_finding(turn, &turn->findings.items[i]);
	if (!code)
		code = sqlite3_exec(turn->db, "COMMIT", NULL, NULL, NULL);
	if (code)
		sqlite3_exec(turn->db, "ROLLBACK", NULL, NULL, NULL);
	return code;
}

/* --- turns ----------------------------------------------------------------------- */

static int begin_turn(struct turn *turn, struct embed *embed, sqlite3 *db)
{
	*turn = (struct turn){ .embed = embed, .db = db };
	if (gethostname(turn->hostname, sizeof(turn->hostname) - 1))
		turn->hostname[0] = 0;
	/* An error in the schema shows here. */
	for (int i = 0; i < STATEMENTS; i++)
		if (i != OWNERS && !statement_of(turn, i))
			return sqlite3_errcode(db);
	return SQLITE_OK;
}

static void end_turn(struct turn *turn)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(turn->statements[i]);
	for (size_t i = 0; i < turn->findings.count; i++) {
		free(turn->findings.items[i].frames);
		free(turn->findings.items[i].generated);
	}
	vector_free(&turn->findings);
	module_rows_free(&turn->modules);
}

int embed_some(struct embed *embed, sqlite3 *db, int64_t budget_ns)
{
	int64_t deadline = (int64_t)clock_ns(CLOCK_MONOTONIC) + budget_ns, stack = embed->stack;
	struct turn turn;
	bool more = false;
	int code = begin_turn(&turn, embed, db);

	if (!code)
		code = look_up_some(&turn, deadline, &stack, &more);
	if (!code)
		code = store_findings(&turn);
	if (code) {
		hash_table_clear(&embed->seen); /* the next turn looks all up again */
	} else {
		more |= stack > embed->stack;
		embed->stack = stack;
		embed->named += (int64_t)turn.findings.count;
	}
	end_turn(&turn);
	return code ? code : more ? SQLITE_OK : SQLITE_DONE;
}

void embed_begin(struct embed *embed, bool can_wait)
{
	*embed = (struct embed){ .can_wait = can_wait, .seen = HASH_TABLE_OF(struct hash, SEEN_MAX) };
}

void embed_end(struct embed *embed, sqlite3 *db)
{
	if (embed->has_owners && db)
		sqlite3_exec(db, "DROP TABLE IF EXISTS temp.embed_owners", NULL, NULL, NULL);
	hash_table_free(&embed->seen);
}

#define CHORE_NS 5000000

bool embed_chore(sqlite3 *db, int64_t file)
{
	static struct embed embed; /* the flusher's alone */
	static int64_t known_file;

	if (!embed.seen.entry_size || file != known_file) {
		embed_end(&embed, NULL);
		embed_begin(&embed, false);
		known_file = file;
	}
	return embed_some(&embed, db, CHORE_NS) == SQLITE_OK;
}
