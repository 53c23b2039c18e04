/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.symbols: the functions of the programs and libraries that are mapped now, at the
 * addresses that traces have for them.
 *
 * The reading thread waits until all of their files are read, as the first look-up of a
 * name waits for one file.
 */
#include "modules/modules.h"
#include "sql/tables_rows.h"
#include "store/store.h"
#include "symbol/symbol.h"

static const struct column symbols_columns[] = {
	{ "symbol", "TEXT", 0 },
	{ "address_begin", "INTEGER", 0 },
	{ "address_end", "INTEGER", 0 }, /* the first one behind */
	{ "module", "TEXT", 0 },
};

struct listing {
	struct table_rows *rows;
	const struct module *module;
	uint64_t shift; /* from an ELF address to one of a trace */
};

static void add_symbol(void *context, const char *name, uint64_t start, uint64_t end)
{
	const struct listing *listing = context;

	table_add_text(listing->rows, name);
	table_add_integer(listing->rows, (int64_t)(start + listing->shift));
	table_add_integer(listing->rows, (int64_t)(end + listing->shift));
	table_add_text(listing->rows, listing->module->path);
}

static bool add_module(void *context, const struct module *module)
{
	const struct symbol_object object = symbol_object_of(module);
	struct listing listing = { .rows = context, .module = module, .shift = module->start };

	store_location(&listing.shift, 1, modules_generation());
	listing.shift -= module->start - module->bias;
	symbol_each(&object, add_symbol, &listing);
	return true;
}

static void fill_symbols(struct table_rows *rows, struct session *session)
{
	(void)session;
	modules_refresh(false);
	modules_each(add_module, rows);
}

const struct table table_symbols = {
	.name = "symbols", TABLE_COLUMNS(symbols_columns), .tells_of_code = true, .fill = fill_symbols
};
