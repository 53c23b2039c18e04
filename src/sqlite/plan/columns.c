/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/columns.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "handler/unwind/stack_copy.h"
#include "sqlite/plan/mapping.h"
#include "sqlite/plan/module_calls.h"

#define NEAR 12        /* opcodes between a column and its comparison */
#define COMPARED_MAX 8 /* columns of a node */
/* The host waits: scans of bytecode, bytes of its text, and names of a table, each perhaps a preparation. */
#define SCANS_MAX 16
#define TEXT_MAX 20000
#define NAMES_TRIED 8
#define NAME_BYTES 128
#define COLUMNS_TRIED 32 /* of a table, of which an index alone is scanned */
#define ROWID -1
#define ASKED_MAX 4 /* columns whose indexes are asked for */
/* Of P5 of a comparison: the affinity that SQLite applies. */
#define AFFINITY 0x47
#define AFFINITY_NUMERIC 0x43 /* and those above */

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
	/* IdxRowid: of an index, whose table is compared by its own columns. Param: a value of the row for
	 * which a trigger or a foreign key's action runs. */
	{ SETS, "IdxRowid Param Integer Int64 Real String8 String Variable" },
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
	const size_t to = (size_t)opcode->to;

	return !strcmp(opcode->name, "Eq") && to < plan->opcodes.count &&
	       !strcmp(plan->opcodes.items[to].name, "Next");
}

/* Whether a comparison chooses a value, as in CASE and iif(), not a row: if it fails, the code continues
 * after the Goto that ends the other value. */
static bool is_of_case(const struct plan *plan, size_t at)
{
	const size_t to = (size_t)plan->opcodes.items[at].to;

	return to > at + 1 && to < plan->opcodes.count && !strcmp(plan->opcodes.items[to - 1].name, "Goto");
}

/* Whether a test for NULL precedes another value for the same register, as in coalesce(). */
static bool is_of_coalesce(const struct plan *plan, size_t at)
{
	const int32_t number = plan->opcodes.items[at].bytes.p1;

	for (size_t i = at + 1; i < (size_t)plan->opcodes.items[at].to && i < plan->opcodes.count; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];
		const enum work work = work_of(opcode->name);

		if ((work == SETS || work == COPIES || work == READS_ROWID)
		            ? opcode->bytes.p2 == number
		            : opcode->bytes.p3 == number &&
		                      (work == READS || work == CALLS || work == COMPUTES))
			return true;
	}
	return false;
}

/* Whether the value read at `at` is the last of coalesce() or the ELSE of CASE: the code that has another
 * value for the register continues after it. */
static bool is_alternative(const struct plan *plan, size_t at)
{
	for (size_t i = at > NEAR ? at - NEAR : 0; i < at; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];

		if ((size_t)opcode->to == at + 1 && text_has_word("NotNull Goto", opcode->name))
			return true;
	}
	return false;
}

/* How the value that the opcode at `at` reads is compared, and the opcode that compares it; NULL: a test. */
static enum comparison comparison_of(const struct plan *plan, size_t at, int32_t to,
                                     const struct plan_opcode **by)
{
	struct values values = { .count = 0 };
	enum comparison found = NOT_COMPARED;

	*by = NULL;
	set(&values, to, is_alternative(plan, at) ? COMPARED_INSIDE : COMPARED_ITSELF);
	for (size_t i = at + 1; i < plan->opcodes.count && i < at + NEAR && values.count; i++) {
		const struct opcode_bytes *bytes = &plan->opcodes.items[i].bytes;

		switch (work_of(plan->opcodes.items[i].name)) {
		case COMPARES:
			/* An index does not serve <>, which leaves the row out if the values are equal. */
			if (is_unequal(plan, &plan->opcodes.items[i]))
				return NOT_COMPARED;
			found = either(holds(&values, bytes->p1, 1), holds(&values, bytes->p3, 1));
			if (is_of_case(plan, i))
				found = inside(found);
			if (found == COMPARED_ITSELF)
				*by = &plan->opcodes.items[i];
			break;
		case TESTS: found = inside(holds(&values, bytes->p1, 1)); break;
		case TESTS_NULL:
			found = holds(&values, bytes->p1, 1);
			if (is_of_coalesce(plan, i))
				found = inside(found);
			break;
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
		const struct plan_opcode *by; /* the first that compares it itself; NULL: none */
	} columns[COMPARED_MAX];
	int count;
	int32_t cursor;
};

static bool is_loop_end(const struct plan_opcode *opcode, size_t at)
{
	return (size_t)opcode->to <= at && text_has_word("Next Prev VNext", opcode->name);
}

/* Whether the opcode at `at`, which reads a column of a cursor, is in the loop of another cursor within the
 * loop of its own. Then it compares each row of that other table, whose scan an index of this column cannot
 * save. */
static bool is_in_inner_loop(const struct plan *plan, size_t at, int32_t cursor)
{
	bool found = false;

	for (size_t i = at; i < plan->opcodes.count; i++) {
		if (!is_loop_end(&plan->opcodes.items[i], at))
			continue;
		if (plan->opcodes.items[i].bytes.p1 == cursor)
			return found;
		found = true;
	}
	return false;
}

static void find_compared(const struct plan *plan, const struct plan_node *node, struct compared *compared)
{
	for (size_t i = 0; i < plan->opcodes.count && compared->count < COMPARED_MAX; i++) {
		const struct plan_opcode *opcode = &plan->opcodes.items[i];
		const enum work work = opcode->node == node->id ? work_of(opcode->name) : ENDS;
		const int32_t number = work == READS ? opcode->bytes.p2 : ROWID;
		const struct plan_opcode *by;
		enum comparison how;
		int known = 0;

		if ((work != READS && work != READS_ROWID) ||
		    (compared->count && opcode->bytes.p1 != compared->cursor) ||
		    !(how = comparison_of(plan, i, work == READS ? opcode->bytes.p3 : opcode->bytes.p2,
		                          &by)) ||
		    is_in_inner_loop(plan, i, opcode->bytes.p1))
			continue;
		while (known < compared->count && compared->columns[known].number != number)
			known++;
		if (known == compared->count) {
			compared->columns[compared->count].number = number;
			compared->columns[compared->count].by = NULL;
			compared->columns[compared->count++].how = NOT_COMPARED;
		}
		if (!compared->columns[known].by)
			compared->columns[known].by = by;
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

/* --- indexes that are not used ---------------------------------------------------------------------- */

struct table {
	const struct opcode_library *library;
	const sqlite3_api_routines *api;
	sqlite3 *db;
	const char *database, *name; /* database NULL: not named */
};

/* The name of a comparison's collation, which begins the structure at P4; "": not known. */
static void read_collation(const struct opcode_bytes *bytes, char *name, size_t size)
{
	uintptr_t at = 0;
	size_t used = 0;

	*name = '\0';
	if (!bytes->p4 || !stack_copy_part((uintptr_t)bytes->p4, &at, sizeof(at)))
		return;
	while (used + 1 < size && stack_copy_part(at + used, name + used, 1) && name[used])
		used += isprint((unsigned char)name[used]) ? 1 : size;
	name[used < size ? used : 0] = '\0';
}

static bool is_own_collation(const char *name)
{
	return !strcasecmp(name, "BINARY") || !strcasecmp(name, "NOCASE") || !strcasecmp(name, "RTRIM");
}

/* The index that SQLite uses to compare the column with this operand: the statement is prepared and never
 * run. False: it uses none. */
static bool find_index(const struct table *table, const char *column, const char *operand, char *index,
                       size_t size)
{
	static const char mark[] = "INDEX ";
	const sqlite3_api_routines *api = table->api;
	sqlite3_stmt *explained = NULL;
	uint32_t count = 0;
	char detail[512] = "";
	char *text = api->mprintf("EXPLAIN QUERY PLAN SELECT 1 FROM %s%s%s\"%w\" WHERE \"%w\" = %s",
	                          table->database ? "\"" : "", table->database ? table->database : "",
	                          table->database ? "\"." : "", table->name, column, operand);

	if (text && module_replay_prepare(api, table->db, text, &explained) == SQLITE_OK && explained) {
		const void *bytecode = opcode_bytecode(table->library, explained, &count);

		for (uint32_t i = 0; i < count && !*detail; i++) {
			const struct opcode_bytes *bytes = opcode_at(table->library, bytecode, i);

			if (!strcmp(table->library->names[bytes->opcode], "Explain"))
				plan_copy_text(detail, sizeof(detail), bytes->p4);
		}
	}
	api->finalize(explained);
	api->free(text);
	char *name = strncmp(detail, "SEARCH ", strlen("SEARCH ")) ? NULL : strstr(detail, mark);
	char *end = name ? strrchr(name, '(') : NULL;

	if (!end || end < name + strlen(mark) + 1)
		return false;
	snprintf(index, size, "%.*s", (int)(end - 1 - name - (ptrdiff_t)strlen(mark)), name + strlen(mark));
	return true;
}

/* If an index begins with a column that a scan compares: why it is not used. SQLite's own planner decides.
 * Only columns of SQLite's collations are asked for, because another one may call the host when it is looked
 * up. */
static void add_unused_index(struct plan_node *node, const struct table *table, const char *column,
                             const struct plan_opcode *by)
{
	const char *own_collation = NULL;
	char collation[NAME_BYTES], operand[NAME_BYTES + 32], index[NAME_BYTES], other[NAME_BYTES],
		why[NAME_BYTES + 64];

	if (table->api->table_column_metadata(table->db, table->database, table->name, column, NULL,
	                                      &own_collation, NULL, NULL, NULL) != SQLITE_OK ||
	    !own_collation || !is_own_collation(own_collation) ||
	    !find_index(table, column, "?1", index, sizeof(index)))
		return;
	read_collation(&by->bytes, collation, sizeof(collation));
	snprintf(operand, sizeof(operand), "?1 COLLATE \"%s\"", collation);
	if (*collation && !strchr(collation, '"') &&
	    !find_index(table, column, operand, other, sizeof(other)))
		snprintf(why, sizeof(why), "the comparison has the collation %s", collation);
	else if ((by->bytes.p5 & AFFINITY) >= AFFINITY_NUMERIC &&
	         !find_index(table, column, "CAST(?1 AS NUMERIC)", other, sizeof(other)))
		snprintf(why, sizeof(why), "the comparison is of numbers");
	else if (!strcmp(by->name, "Eq") || !strcmp(by->name, "Ne"))
		snprintf(why, sizeof(why), "why is not known%s",
		         table->api->table_column_metadata(table->db, table->database, "sqlite_stat1", NULL,
		                                           NULL, NULL, NULL, NULL, NULL) == SQLITE_OK
		                 ? ""
		                 : ", no sqlite_stat1");
	else
		return;
	char *words = table->api->mprintf("; index %s (%s) is not searched: %s", index, column, why);

	if (words)
		add_name(node, "", words);
	table->api->free(words);
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
                      const char *head, const char *const *names)
{
	const char *separator = head;

	for (int i = 0; i < compared->count; i++)
		if (compared->columns[i].how == how && names[i]) {
			add_name(node, separator, names[i]);
			separator = ", ";
		}
}

/* From the bytecode of SELECT * FROM a table. False: it is a different tree. */
static bool find_names(const struct compared *compared, const struct tree *wanted, const struct table *table,
                       sqlite3_stmt *stmt, const char **names)
{
	const struct opcode_library *library = table->library;
	struct all_columns all = { .library = library, .api = table->api, .stmt = stmt };
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
	for (int i = 0; i < compared->count; i++)
		names[i] = name_of(&all, compared->columns[i].number);
	return true;
}

/* The number that a column has in the rows of this tree, by the bytecode of a scan of the column alone; -2:
 * it is not in them. */
static int32_t number_in(const struct table *table, const struct tree *wanted, sqlite3_stmt *stmt)
{
	uint32_t count;
	const void *bytecode = opcode_bytecode(table->library, stmt, &count);
	struct tree tree = { 0, 0 };
	int32_t cursor = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct opcode_bytes *bytes = opcode_at(table->library, bytecode, i);
		const char *name = table->library->names[bytes->opcode];

		if (!tree.root && opens(bytes, name, bytes->p1, &tree))
			cursor = bytes->p1;
		else if (tree.root == wanted->root && tree.database == wanted->database &&
		         bytes->p1 == cursor && work_of(name) == READS)
			return bytes->p2;
	}
	return -2;
}

/* In a scan of an index alone, columns have the numbers of the index. stmt: SELECT * FROM its table. */
static bool find_covered(const struct plan_node *node, const struct compared *compared,
                         const struct tree *wanted, const struct table *table, sqlite3_stmt *stmt,
                         const char **names)
{
	static const char mark[] = " USING COVERING INDEX ";
	const sqlite3_api_routines *api = table->api;
	const char *index = strstr(node->detail, mark);
	const int count = index ? api->column_count(stmt) : 0;
	bool found = false;

	for (int column = 0; column < count && column < COLUMNS_TRIED; column++) {
		const char *name = api->column_name(stmt, column);
		char *text = api->mprintf("SELECT \"%w\" FROM %s%s%s\"%w\" INDEXED BY \"%w\"", name,
		                          table->database ? "\"" : "", table->database ? table->database : "",
		                          table->database ? "\"." : "", table->name, index + strlen(mark));
		sqlite3_stmt *one = NULL;
		int32_t number = -2;

		if (text && module_replay_prepare(api, table->db, text, &one) == SQLITE_OK && one)
			number = number_in(table, wanted, one);
		for (int i = 0; i < compared->count; i++)
			if (compared->columns[i].number == number) {
				names[i] = name;
				found = true;
			}
		api->finalize(one);
		api->free(text);
	}
	return found;
}

/* stmt: SELECT * FROM the table. False: it is a different table. */
static bool name_columns(struct plan_node *node, const struct compared *compared, const struct tree *wanted,
                         const struct table *table, sqlite3_stmt *stmt)
{
	const char *names[COMPARED_MAX] = { NULL };

	if (!find_names(compared, wanted, table, stmt, names) &&
	    !find_covered(node, compared, wanted, table, stmt, names))
		return false;
	add_names(node, compared, COMPARED_ITSELF, "", names);
	add_names(node, compared, COMPARED_INSIDE,
	          node->compared[0] ? "; in expressions: " : "in expressions: ", names);
	for (int i = 0, asked = 0; i < compared->count && asked < ASKED_MAX; i++)
		if (compared->columns[i].by && names[i]) {
			asked++;
			add_unused_index(node, table, names[i], compared->columns[i].by);
		}
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
	struct table of = { library, api, db, point ? database : NULL, table };

	if (text && module_replay_prepare(api, db, text, &all) == SQLITE_OK && all)
		is_it = name_columns(node, compared, wanted, &of, all);
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
	const char *name = strchr(node->detail, ' ') + 1;
	size_t size;

	if (!strncmp(name, "TABLE ", strlen("TABLE "))) /* until 3.35 */
		name += strlen("TABLE ");
	const char *const behind[] = { strstr(name, " AS "), strstr(name, " USING "),
		                       strstr(name, " LEFT-JOIN") };
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

/* SQLite writes SEARCH without an index if it reads all rows for a minimum or maximum. */
static bool reads_all_rows(const struct plan_node *node)
{
	return !strncmp(node->detail, "SCAN ", strlen("SCAN ")) ||
	       (!strncmp(node->detail, "SEARCH ", strlen("SEARCH ")) && !strstr(node->detail, " USING "));
}

void plan_columns_name(struct plan *plan, const struct opcode_library *library,
                       const sqlite3_api_routines *api, sqlite3 *db, const char *text)
{
	for (size_t i = 0, scans = 0; i < plan->nodes.count && scans < SCANS_MAX; i++) {
		struct plan_node *node = &plan->nodes.items[i];
		struct compared compared = { .count = 0 };
		struct tree tree;

		if (!reads_all_rows(node))
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
