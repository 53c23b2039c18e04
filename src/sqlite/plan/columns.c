/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/columns.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define NEAR 12        /* opcodes between a column and its comparison */
#define COMPARED_MAX 8 /* columns of a node */
/* The host waits: scans of bytecode, bytes of its text, and names of a table, each perhaps a preparation. */
#define SCANS_MAX 16
#define TEXT_MAX 20000
#define NAMES_TRIED 8
#define NAME_BYTES 128
#define ROWID -1

/* The work of an opcode on registers, as far as conditions need it. Any other one ends the search. */
enum work {
	ENDS,
	COMPARES,     /* P1 and P3 */
	TESTS,        /* P1, for truth */
	TESTS_NULL,   /* P1 */
	LOOKS_UP,     /* P3 and those after it */
	READS,        /* a column, to P3 */
	READS_ROWID,  /* to P2 */
	SETS,         /* what is not of the column, to P2 */
	COPIES,       /* P1 to P2 */
	COMPUTES,     /* P1 and P2 to P3 */
	CALLS,        /* from P2 to P3 */
	CASTS,        /* P1 in its place, as CAST does; a comparison's own conversion is Affinity */
	CHANGES_NONE, /* no other register becomes known or unknown */
};

static const struct {
	enum work work;
	const char *opcodes;
} works[] = {
	{ COMPARES, "Eq Ne Lt Le Gt Ge" },
	{ TESTS, "If IfNot" },
	{ TESTS_NULL, "NotNull" },
	{ LOOKS_UP, "NotFound" },
	{ READS, "Column" },
	{ READS_ROWID, "Rowid" },
	/* IdxRowid: of an index, whose table is compared by its own columns. */
	{ SETS, "IdxRowid Integer Int64 Real String8 String Variable" },
	{ COPIES, "Copy SCopy" },
	{ COMPUTES, "Add Subtract Multiply Divide Remainder Concat BitAnd BitOr" },
	{ CALLS, "Function Function0 PureFunc" },
	{ CHANGES_NONE, "Affinity RealAffinity IsNull" },
	{ CASTS, "Cast" },
};

static enum work work_of(const char *name)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (text_has_word(works[i].opcodes, name))
			return works[i].work;
	return ENDS;
}

/* --- which columns ------------------------------------------------------------------------------ */

/* How a statement compares a column. An index on the column can serve a comparison of its value; it cannot
 * serve one of what functions or arithmetic made of it, nor a test for truth. */
enum comparison { NOT_COMPARED, COMPARED_INSIDE, COMPARED_ITSELF };

/* Registers with values derived from the column, and whether they are still the column's value. */
struct values {
	struct {
		int32_t number;
		bool is_itself;
	} registers[NEAR];
	int count;
};

static enum comparison holds(const struct values *values, int32_t first, int32_t count)
{
	enum comparison found = NOT_COMPARED;

	for (int i = 0; i < values->count; i++) {
		const int32_t number = values->registers[i].number;

		if (number < first || number >= first + count)
			continue;
		if (values->registers[i].is_itself)
			return COMPARED_ITSELF;
		found = COMPARED_INSIDE;
	}
	return found;
}

/* Arguments are in consecutive registers. */
#define ARGUMENTS 4

static void set(struct values *values, int32_t number, enum comparison as)
{
	int kept = 0;

	for (int i = 0; i < values->count; i++)
		if (values->registers[i].number != number)
			values->registers[kept++] = values->registers[i];
	values->count = kept;
	if (as == NOT_COMPARED)
		return;
	values->registers[kept].number = number;
	values->registers[kept].is_itself = as == COMPARED_ITSELF;
	values->count++;
}

static enum comparison inside(enum comparison value)
{
	return value == COMPARED_ITSELF ? COMPARED_INSIDE : value;
}

static enum comparison either(enum comparison one, enum comparison other)
{
	return one > other ? one : other;
}

static bool is_unequal(const struct plan *plan, const struct plan_opcode *opcode)
{
	const size_t to = (size_t)opcode->bytes.p2;

	return !strcmp(opcode->name, "Eq") && to < plan->opcodes.count &&
	       !strcmp(plan->opcodes.items[to].name, "Next");
}

/* How the value that the opcode at `at` reads is compared. */
static enum comparison comparison_of(const struct plan *plan, size_t at, int32_t to)
{
	struct values values = { .count = 0 };
	enum comparison found = NOT_COMPARED;

	set(&values, to, COMPARED_ITSELF);
	for (size_t i = at + 1; i < plan->opcodes.count && i < at + NEAR && values.count; i++) {
		const struct opcode_bytes *bytes = &plan->opcodes.items[i].bytes;

		switch (work_of(plan->opcodes.items[i].name)) {
		case COMPARES:
			/* An index does not serve <>, which leaves the row out if the values are equal. */
			if (is_unequal(plan, &plan->opcodes.items[i]))
				return NOT_COMPARED;
			found = either(holds(&values, bytes->p1, 1), holds(&values, bytes->p3, 1));
			break;
		case TESTS: found = inside(holds(&values, bytes->p1, 1)); break;
		case TESTS_NULL: found = holds(&values, bytes->p1, 1); break;
		case LOOKS_UP: found = holds(&values, bytes->p3, ARGUMENTS); break;
		case READS: set(&values, bytes->p3, NOT_COMPARED); break;
		case READS_ROWID:
		case SETS: set(&values, bytes->p2, NOT_COMPARED); break;
		case COPIES: set(&values, bytes->p2, holds(&values, bytes->p1, 1)); break;
		case COMPUTES:
			set(&values, bytes->p3,
			    inside(either(holds(&values, bytes->p1, 1), holds(&values, bytes->p2, 1))));
			break;
		case CALLS: set(&values, bytes->p3, inside(holds(&values, bytes->p2, ARGUMENTS))); break;
		case CASTS: set(&values, bytes->p1, inside(holds(&values, bytes->p1, 1))); break;
		case CHANGES_NONE: break;
		case ENDS: return NOT_COMPARED;
		}
		if (found != NOT_COMPARED)
			return found;
	}
	return NOT_COMPARED;
}

/* A scan's columns by their numbers in the table's rows, and the cursor that reads them. */
struct compared {
	struct {
		int32_t number;
		enum comparison how;
	} columns[COMPARED_MAX];
	int count;
	int32_t cursor;
};

static void find_compared(const struct plan *plan, const struct plan_node *node, struct compared *compared)
{
	for (size_t i = 0; i < plan->opcodes.count && compared->count < COMPARED_MAX; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];
		const enum work work = opcode->node == node->id ? work_of(opcode->name) : ENDS;
		const int32_t number = work == READS ? opcode->bytes.p2 : ROWID;
		enum comparison how;
		int known = 0;

		if ((work != READS && work != READS_ROWID) ||
		    (compared->count && opcode->bytes.p1 != compared->cursor) ||
		    !(how = comparison_of(plan, i, work == READS ? opcode->bytes.p3 : opcode->bytes.p2)))
			continue;
		while (known < compared->count && compared->columns[known].number != number)
			known++;
		if (known == compared->count) {
			compared->columns[compared->count].number = number;
			compared->columns[compared->count++].how = NOT_COMPARED;
		}
		compared->columns[known].how = either(compared->columns[known].how, how);
		compared->cursor = opcode->bytes.p1;
	}
}

/* --- their names ---------------------------------------------------------------------------------- */

/* A table, as bytecode opens it. */
struct tree {
	int32_t root, database;
};

static bool opens(const struct opcode_bytes *bytes, const char *name, int32_t cursor, struct tree *tree)
{
	if ((strcmp(name, "OpenRead") != 0 && strcmp(name, "OpenWrite") != 0) || bytes->p1 != cursor)
		return false;
	*tree = (struct tree){ bytes->p2, bytes->p3 };
	return true;
}

static void add_name(struct plan_node *node, const char *separator, const char *name)
{
	const size_t used = strlen(node->compared);
	const int size =
		snprintf(node->compared + used, sizeof(node->compared) - used, "%s%s", separator, name);

	if (size < 0 || (size_t)size >= sizeof(node->compared) - used)
		node->compared[used] = '\0';
	for (char *at = node->compared + used; *at; at++)
		if (*at == '\n' || *at == '\t')
			*at = ' ';
}

/* The bytecode of SELECT * FROM a table. */
struct all_columns {
	const struct opcode_library *library;
	const sqlite3_api_routines *api;
	sqlite3_stmt *stmt;
	const void *bytecode;
	uint32_t count;
	int32_t cursor, first; /* of the table, and of the registers of a row */
};

/* NULL: the bytecode does not read that column. */
static const char *name_of(const struct all_columns *all, int32_t number)
{
	for (uint32_t i = 0; i < all->count; i++) {
		const struct opcode_bytes *bytes = opcode_at(all->library, all->bytecode, i);
		const enum work work = work_of(all->library->names[bytes->opcode]);
		const int at = (work == READS ? bytes->p3 : bytes->p2) - all->first;

		if (bytes->p1 == all->cursor && at >= 0 &&
		    ((work == READS && bytes->p2 == number) || (work == READS_ROWID && number == ROWID)))
			return all->api->column_name(all->stmt, at);
	}
	return NULL;
}

static void add_names(struct plan_node *node, const struct compared *compared, enum comparison how,
                      const char *head, const struct all_columns *all)
{
	const char *separator = head;

	for (int i = 0; i < compared->count; i++) {
		const char *name =
			compared->columns[i].how == how ? name_of(all, compared->columns[i].number) : NULL;

		if (!name)
			continue;
		add_name(node, separator, name);
		separator = ", ";
	}
}

/* From the bytecode of SELECT * FROM a table. False: it is a different table. */
static bool name_columns(struct plan_node *node, const struct compared *compared, const struct tree *wanted,
                         const struct opcode_library *library, const sqlite3_api_routines *api,
                         sqlite3_stmt *stmt)
{
	struct all_columns all = { .library = library, .api = api, .stmt = stmt };
	struct tree tree = { 0, 0 };

	all.bytecode = opcode_bytecode(library, stmt, &all.count);
	for (uint32_t i = 0; i < all.count; i++) {
		const struct opcode_bytes *bytes = opcode_at(library, all.bytecode, i);

		if (!tree.root && opens(bytes, library->names[bytes->opcode], bytes->p1, &tree))
			all.cursor = bytes->p1;
		if (!strcmp(library->names[bytes->opcode], "ResultRow"))
			all.first = bytes->p1;
	}
	if (tree.root != wanted->root || tree.database != wanted->database || !all.first)
		return false;
	add_names(node, compared, COMPARED_ITSELF, "", &all);
	add_names(node, compared, COMPARED_INSIDE,
	          node->compared[0] ? "; in expressions: " : "in expressions: ", &all);
	return true;
}

/* `name`: of a table, possibly qualified by its database. */
static bool try_name(struct plan_node *node, const struct compared *compared, const struct tree *wanted,
                     const struct opcode_library *library, const sqlite3_api_routines *api, sqlite3 *db,
                     const char *name, size_t size)
{
	const char *point = memchr(name, '.', size);
	const size_t before = point ? (size_t)(point - name) : 0, behind = before + (point != NULL);
	char database[NAME_BYTES], table[NAME_BYTES];
	sqlite3_stmt *all = NULL;
	bool is_it = false;

	if (!size || size >= NAME_BYTES || !api->table_column_metadata)
		return false;
	snprintf(database, sizeof(database), "%.*s", (int)before, name);
	snprintf(table, sizeof(table), "%.*s", (int)(size - behind), name + behind);
	/* An error of the preparation would be logged. */
	if (api->table_column_metadata(db, point ? database : NULL, table, NULL, NULL, NULL, NULL, NULL,
	                               NULL) != SQLITE_OK)
		return false;
	char *text = api->mprintf("SELECT * FROM %s%s%s\"%w\" NOT INDEXED", point ? "\"" : "", database,
	                          point ? "\"." : "", table);
	if (text && api->prepare_v2(db, text, -1, &all, NULL) == SQLITE_OK && all)
		is_it = name_columns(node, compared, wanted, library, api, all);
	api->finalize(all);
	api->free(text);
	return is_it;
}

static bool is_name(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '.';
}

/* Back over the characters in between. */
static const char *skip_back(const char *text, const char *at, bool names)
{
	while (at > text && (names ? is_name(at[-1]) : isspace((unsigned char)at[-1])))
		at--;
	return at;
}

/* The name before an alias at `at`, and possibly AS; NULL: there is none. */
static const char *name_before(const char *text, const char *at, size_t *size)
{
	for (int words = 0; words < 2; words++) {
		const char *end = skip_back(text, at, false);

		at = skip_back(text, end, true);
		*size = (size_t)(end - at);
		if (*size != 2 || strncasecmp(at, "AS", 2) != 0)
			break;
	}
	return *size ? at : NULL;
}

static void name_node(struct plan_node *node, const struct compared *compared, const struct tree *wanted,
                      const struct opcode_library *library, const sqlite3_api_routines *api, sqlite3 *db,
                      const char *text)
{
	const char *name = node->detail + strlen("SCAN ");
	size_t size;

	if (!strncmp(name, "TABLE ", strlen("TABLE "))) /* until 3.35 */
		name += strlen("TABLE ");
	const char *const behind[] = { strstr(name, " AS "), strstr(name, " USING ") };
	size = strlen(name);
	for (size_t i = 0; i < sizeof(behind) / sizeof(*behind); i++)
		if (behind[i] && (size_t)(behind[i] - name) < size)
			size = (size_t)(behind[i] - name);
	if (try_name(node, compared, wanted, library, api, db, name, size))
		return;
	/* It is an alias. */
	int tried = size ? 0 : NAMES_TRIED;
	for (const char *at = text; *at && at < text + TEXT_MAX && tried < NAMES_TRIED; at++) {
		const char *before;
		size_t before_size;

		if (strncasecmp(at, name, size) != 0 || is_name(at[size]) || at == text || is_name(at[-1]))
			continue;
		before = name_before(text, at, &before_size);
		if (before &&
		    (tried++, try_name(node, compared, wanted, library, api, db, before, before_size)))
			return;
	}
}

void plan_columns_name(struct plan *plan, const struct opcode_library *library,
                       const sqlite3_api_routines *api, sqlite3 *db, const char *text)
{
	for (size_t i = 0, scans = 0; i < plan->nodes.count && scans < SCANS_MAX; i++) {
		struct plan_node *node = &plan->nodes.items[i];
		struct compared compared = { .count = 0 };
		struct tree tree;

		if (strncmp(node->detail, "SCAN ", strlen("SCAN ")) != 0)
			continue;
		scans++;
		find_compared(plan, node, &compared);
		for (size_t at = 0; compared.count && at < plan->opcodes.count; at++)
			if (opens(&plan->opcodes.items[at].bytes, plan->opcodes.items[at].name,
			          compared.cursor, &tree)) {
				name_node(node, &compared, &tree, library, api, db, text);
				break;
			}
	}
}
