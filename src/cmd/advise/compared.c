/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/advise/compared.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_token.h"

/* --- tokens ------------------------------------------------------------------------------------- */

struct text {
	VECTOR(struct sql_token) tokens; /* without comments; operators such as <= are one token */
	const touches *touched;
	sqlite3_stmt *statement;
	struct compared *to;
};

static void read_tokens(struct text *text, const char *sql)
{
	const char *end = sql + strlen(sql);
	struct sql_token token;

	for (; (token = sql_token_next(sql, end)).size; sql = token.at + token.size) {
		if (token.kind == SQL_SIGN && strchr("<>=!|", *token.at) && token.at + 1 < end &&
		    strchr("=<>|", token.at[1]))
			token.size = 2;
		if (token.kind != SQL_COMMENT && !vector_push(&text->tokens, token))
			break;
	}
}

/* Outside the text, a token has no bytes. */
static const struct sql_token *token_at(const struct text *text, size_t at)
{
	static const struct sql_token end = { SQL_SIGN, "", 0 };

	return at < text->tokens.count ? &text->tokens.items[at] : &end;
}

static bool is_one_of(const struct text *text, size_t at, const char *const *words)
{
	return sql_token_is_one_of(token_at(text, at), words);
}

static bool is_word(const struct text *text, size_t at, const char *word)
{
	const char *const words[] = { word, NULL };

	return is_one_of(text, at, words);
}

/* Whether the token is that name, quoted or not. */
static bool is_name(const struct text *text, size_t at, const char *name)
{
	const struct sql_token token = sql_token_bare(token_at(text, at));

	return sql_token_is_name(&token) && token.size == strlen(name) &&
	       !sqlite3_strnicmp(token.at, name, (int)token.size);
}

/* --- columns -------------------------------------------------------------------------------------- */

/* Whether the text calls the table by that alias: "table alias" or "table AS alias". */
static bool has_alias(const struct text *text, const char *table, const struct sql_token *alias)
{
	for (size_t i = 0; i + 1 < text->tokens.count; i++) {
		const struct sql_token *next = token_at(text, is_word(text, i + 1, "AS") ? i + 2 : i + 1);

		if (is_name(text, i, table) && sql_token_is_name(next) && next->size == alias->size &&
		    !sqlite3_strnicmp(next->at, alias->at, (int)alias->size))
			return true;
	}
	return false;
}

/* The column that SQLite reported and whose name is this token; NULL: the token is not a column. */
static const struct touch *find_column(const struct text *text, size_t at)
{
	const bool is_qualified = is_word(text, at - 1, ".") && at >= 2;
	const struct touch *found = NULL;

	for (size_t i = 0; i < text->touched->count; i++) {
		const struct touch *touch = &text->touched->items[i];

		if (touch->is_write || !*touch->column || !is_name(text, at, touch->column))
			continue;
		if (!is_qualified || is_name(text, at - 2, touch->table) ||
		    has_alias(text, touch->table, token_at(text, at - 2)))
			return touch;
		found = found ? found : touch;
	}
	return is_qualified ? found : NULL;
}

/* A column that ends before the token `end`, or begins at `start`, or a function of a column. */
struct operand {
	const struct touch *column;
	const struct sql_token *function;
};

static struct operand operand_before(const struct text *text, size_t end)
{
	struct operand operand = { 0 };
	size_t open;

	if (end == 0)
		return operand;
	if (!is_word(text, end - 1, ")")) {
		operand.column = find_column(text, end - 1);
	} else if (end >= 4) {
		open = is_word(text, end - 3, ".") && end >= 6 ? end - 5 : end - 3;
		if (is_word(text, open, "(") && sql_token_is_name(token_at(text, open - 1))) {
			operand.column = find_column(text, end - 2);
			operand.function = token_at(text, open - 1);
		}
	}
	return operand;
}

static struct operand operand_at(const struct text *text, size_t start)
{
	size_t end = is_word(text, start + 1, ".") ? start + 3 : start + 1;

	if (is_word(text, end, "(")) {
		end = is_word(text, end + 2, ".") ? end + 5 : end + 3;
		return is_word(text, end - 1, ")") ? operand_before(text, end) : (struct operand){ 0 };
	}
	return sql_token_is_name(token_at(text, start)) ? operand_before(text, end) : (struct operand){ 0 };
}

static void add_use(struct text *text, const struct operand *operand, enum role role, int list,
                    bool is_descending)
{
	struct use *use = operand->column && sqlite3_stricmp(operand->column->column, "ROWID") != 0
	                          ? vector_add(&text->to->uses)
	                          : NULL;

	if (!use)
		return;
	*use = (struct use){ .table = operand->column->table, .role = role, .list = list };
	use->key = operand->function ? sqlite3_mprintf("%.*s(\"%w\")", (int)operand->function->size,
	                                               operand->function->at, operand->column->column)
	                             : sqlite3_mprintf("\"%w\"%s", operand->column->column,
	                                               is_descending ? " DESC" : "");
	if (!use->key)
		text->to->uses.count--;
}

/* "= 'open'", "IS NULL" or "IS NOT NULL" from the token `at` on, if nothing else follows in the term.
 * Returns the text of the column's condition, sqlite3_malloc'ed; NULL: the tokens are something else. */
static char *find_condition(const struct text *text, const struct touch *column, size_t at)
{
	static const char *const ends[] = { "AND", ")", ";", "ORDER", "GROUP", "LIMIT", "", NULL };
	const size_t last = is_word(text, at + 1, "NOT") ? at + 2 : at + 1;
	const struct sql_token *value = token_at(text, last), *first = token_at(text, at);
	const bool is_null = is_word(text, at, "IS") && is_word(text, last, "NULL");

	if ((!is_null && (value->kind != SQL_LITERAL || last != at + 1)) ||
	    (token_at(text, last + 1)->size && !is_one_of(text, last + 1, ends)))
		return NULL;
	return sqlite3_mprintf("\"%w\" %.*s", column->column, (int)(value->at + value->size - first->at),
	                       first->at);
}

/* --- comparisons and sorting ---------------------------------------------------------------------- */

static void find_comparison(struct text *text, size_t at)
{
	static const char *const equal[] = { "=", "==", "IS", "IN", NULL };
	static const char *const range[] = { "<", "<=", ">", ">=", "BETWEEN", NULL };
	const bool is_equal = is_one_of(text, at, equal);
	struct operand sides[2];

	if (!is_equal && !is_one_of(text, at, range))
		return;
	sides[0] = operand_before(text, at);
	sides[1] = operand_at(text, at + 1);
	for (int i = 0; i < 2; i++) {
		const size_t count = text->to->uses.count;

		add_use(text, &sides[i], is_equal ? ROLE_EQUAL : ROLE_RANGE, 0, false);
		if (i == 0 && is_equal && text->to->uses.count > count && !sides[0].function)
			text->to->uses.items[count].condition = find_condition(text, sides[0].column, at);
	}
}

/* The columns after ORDER BY or GROUP BY, up to an item that is not a column. */
static void find_list(struct text *text, size_t at, int list)
{
	const enum role role = is_word(text, at, "ORDER") ? ROLE_ORDER : ROLE_GROUP;

	if (!is_word(text, at + 1, "BY"))
		return;
	for (at += 2;; at++) {
		struct operand operand = operand_at(text, at);
		bool is_descending;

		if (!operand.column)
			return;
		while (sql_token_is_name(token_at(text, at)) || is_word(text, at, ".") ||
		       is_word(text, at, "(") || (operand.function && is_word(text, at, ")"))) {
			if (is_word(text, at + 1, "DESC") || is_word(text, at + 1, "ASC") ||
			    is_word(text, at + 1, ",")) {
				at++;
				break;
			}
			at++;
		}
		is_descending = is_word(text, at, "DESC");
		add_use(text, &operand, role, list, is_descending);
		at += is_descending || is_word(text, at, "ASC");
		if (!is_word(text, at, ","))
			return;
	}
}

/* --- parameters --------------------------------------------------------------------------------------- */

/* The column for the value at `at` in INSERT INTO t (a, b) VALUES (?, ?). */
static bool find_inserted(const struct text *text, size_t at, struct parameter *parameter)
{
	size_t open = at, values, into = 0, list;
	int place = 0, depth = 0;

	while (open-- > 0 && (depth || !is_word(text, open, "("))) {
		depth += is_word(text, open, ")") - is_word(text, open, "(");
		place += !depth && is_word(text, open, ",");
	}
	if (open >= at)
		return false;
	for (values = open; values > 0 && !is_word(text, values, "VALUES"); values--)
		if (is_word(text, values, "SELECT") || is_word(text, values, "SET") ||
		    is_word(text, values, "WHERE"))
			return false;
	while (into < values && !is_word(text, into, "INTO"))
		into++;
	if (!is_word(text, open - 1, "VALUES") && !is_word(text, open - 1, ","))
		return false;
	list = is_word(text, into + 2, "(") ? into + 3 + 2 * (size_t)place : 0;
	for (size_t i = 0; values && list < values && i < text->touched->count; i++) {
		const struct touch *touch = &text->touched->items[i];
		const struct sql_token name = sql_token_bare(token_at(text, list));

		if (!touch->is_write || !is_name(text, into + 1, touch->table))
			continue;
		*parameter =
			(struct parameter){ .table = touch->table, .number = place, .is_inserted = true };
		if (list)
			parameter->column = sqlite3_mprintf("%.*s", (int)name.size, name.at);
		return parameter->is_known = true;
	}
	return false;
}

/* The column that SET assigns, which SQLite need not report as read. */
static const struct touch *find_written(const struct text *text, size_t at)
{
	for (size_t i = 0; i < text->touched->count; i++)
		if (text->touched->items[i].is_write && is_name(text, at, text->touched->items[i].column))
			return &text->touched->items[i];
	return NULL;
}

static void find_parameter(struct text *text, size_t at, struct parameter *parameter)
{
	static const char *const compare[] = { "=",  "==", "<",    "<=",   ">",       ">=", "<>",
		                               "!=", "IS", "LIKE", "GLOB", "BETWEEN", NULL };
	struct operand operand = { 0 };
	size_t before = at;

	if (is_word(text, at - 1, "LIMIT") || is_word(text, at - 1, "OFFSET")) {
		*parameter = (struct parameter){ .number = is_word(text, at - 1, "LIMIT") ? 20 : 0,
			                         .is_known = true };
		return;
	}
	if (at && is_one_of(text, at - 1, compare))
		operand = operand_before(text, at - 1);
	if (!operand.column && at && is_word(text, at - 1, "AND") && at >= 3 &&
	    is_word(text, at - 3, "BETWEEN"))
		operand = operand_before(text, at - 3);
	if (!operand.column && is_one_of(text, at + 1, compare))
		operand = operand_at(text, at + 2);
	while (!operand.column && before > 0 &&
	       (is_word(text, before - 1, ",") || token_at(text, before - 1)->kind == SQL_PARAMETER ||
	        token_at(text, before - 1)->kind == SQL_LITERAL))
		before--;
	if (!operand.column && before >= 2 && is_word(text, before - 1, "(") &&
	    is_word(text, before - 2, "IN"))
		operand = operand_before(text, is_word(text, before - 3, "NOT") ? before - 3 : before - 2);
	if (!operand.column && at >= 2 && is_word(text, at - 1, "="))
		operand.column = find_written(text, at - 2);
	if (operand.column && !operand.function)
		*parameter = (struct parameter){ .table = operand.column->table,
			                         .column = sqlite3_mprintf("%s", operand.column->column),
			                         .is_known = true };
	else if (!operand.column)
		find_inserted(text, at, parameter);
}

static void find_parameters(struct text *text)
{
	int last = 0;

	for (size_t i = 0; i < text->tokens.count; i++) {
		const struct sql_token *token = token_at(text, i);
		struct parameter *parameter;
		char name[64];
		int number;

		if (token->kind != SQL_PARAMETER || token->size >= sizeof(name))
			continue;
		memcpy(name, token->at, token->size);
		name[token->size] = 0;
		number = token->size == 1 ? last + 1 : sqlite3_bind_parameter_index(text->statement, name);
		last = number > last ? number : last;
		parameter = number > 0 ? vector_at(&text->to->parameters, (size_t)number - 1) : NULL;
		if (parameter && !parameter->is_known)
			find_parameter(text, i, parameter);
	}
}

void compared_find(struct compared *compared, const char *sql, const touches *touched,
                   sqlite3_stmt *statement)
{
	struct text text = { .touched = touched, .to = compared, .statement = statement };
	bool is_set = false;
	int list = 0;

	*compared = (struct compared){ 0 };
	read_tokens(&text, sql);
	for (size_t i = 0; i < text.tokens.count; i++) {
		if (is_word(&text, i, "SET"))
			is_set = true;
		else if (is_word(&text, i, "WHERE") || is_word(&text, i, "FROM") ||
		         is_word(&text, i, "SELECT"))
			is_set = false;
		else if (is_word(&text, i, "ORDER") || is_word(&text, i, "GROUP"))
			find_list(&text, i, ++list);
		else if (!is_set)
			find_comparison(&text, i);
	}
	find_parameters(&text);
	vector_free(&text.tokens);
}

void compared_keep_conditions(struct compared *compared, const struct compared *written)
{
	for (size_t i = 0; i < compared->uses.count; i++) {
		struct use *use = &compared->uses.items[i];
		bool is_written = false;

		for (size_t w = 0; use->condition && w < written->uses.count; w++) {
			const struct use *other = &written->uses.items[w];

			is_written |= other->condition && !strcmp(other->table, use->table) &&
			              !strcmp(other->condition, use->condition);
		}
		if (!is_written) {
			sqlite3_free(use->condition);
			use->condition = NULL;
		}
	}
}

void compared_free(struct compared *compared)
{
	for (size_t i = 0; i < compared->uses.count; i++) {
		sqlite3_free(compared->uses.items[i].key);
		sqlite3_free(compared->uses.items[i].condition);
	}
	for (size_t i = 0; i < compared->parameters.count; i++)
		sqlite3_free((void *)compared->parameters.items[i].column);
	vector_free(&compared->uses);
	vector_free(&compared->parameters);
}
