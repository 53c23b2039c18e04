/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.modules: the programs and libraries that are mapped now, and where the names of
 * their functions and their lines come from:
 *
 *	SELECT path, names_from, lines_from, why_not FROM system.modules WHERE why_not <> '';
 *
 * Reading it waits for all of their files to be read.
 */
#include "modules/modules.h"
#include "sql/tables_rows.h"
#include "symbol/symbol.h"

static const struct column modules_columns[] = {
	{ "path", "TEXT", 0 },
	{ "build_id", "TEXT", 0 }, /* hex; '': it has none */
	{ "address_begin", "INTEGER", 0 },
	{ "address_end", "INTEGER", 0 }, /* the first one behind */
	{ "names_from", "TEXT", 0 },     /* NULL: it has no names */
	{ "lines_from", "TEXT", 0 },     /* NULL: it has no lines */
	{ "why_not", "TEXT", 0 },        /* '': nothing is missing */
};

static bool add_module(void *context, const struct module *module)
{
	struct symbol_description description;
	struct table_rows *rows = context;

	if (!symbol_describe(module->path, module->build_id, &description)) {
		table_add_failed(rows);
		return false;
	}
	table_add_text(rows, module->path);
	table_add_text(rows, module->build_id);
	table_add_integer(rows, (int64_t)module->start);
	table_add_integer(rows, (int64_t)module->end);
	table_add_text(rows, description.names_from);
	table_add_text(rows, description.lines_from);
	table_add_text(rows, description.why_not);
	return true;
}

static void fill_modules(struct table_rows *rows, struct session *session)
{
	(void)session;
	modules_refresh(false);
	modules_each(add_module, rows);
}

const struct table table_modules = {
	.name = "modules", TABLE_COLUMNS(modules_columns), .tells_of_code = true, .fill = fill_modules
};
