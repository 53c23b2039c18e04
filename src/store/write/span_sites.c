/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/span_sites.h"

#include <stdlib.h>
#include <string.h>

#include "store/write/writer.h"

#define SITE_BATCHES 4096 /* rows until a statement's site is marked as used again */

/* record: the meaning of its number; NULL: it belongs to a statement */
struct known_span_site {
	struct hash key;
	int64_t row;    /* 0: not looked up yet */
	int64_t newest; /* of a statement: batches up to this one may name it */
	struct span_site_record *record;
};

const struct span_site_writer span_site_writer_new = {
	.of_code = HASH_TABLE_OF(struct known_span_site, SIZE_MAX), /* the host's code has few */
	.of_statements = HASH_TABLE_OF(struct known_span_site, 1 << 14),
	.sql = {
		.find.sql = "SELECT id FROM span_sites WHERE name = :name AND file = :file AND line = :line"
		            " AND function = :function AND statement = :statement AND wait = :wait",
		.add.sql = "INSERT INTO span_sites (name, file, line, function, statement, wait) VALUES"
		           " (:name, :file, :line, :function, :statement, :wait)",
	},
};

static void free_span_site(void *context, void *entry)
{
	(void)context;
	free(((struct known_span_site *)entry)->record);
}

void span_site_writer_free(struct span_site_writer *sites)
{
	hash_table_each(&sites->of_code, free_span_site, NULL);
	hash_table_free(&sites->of_code);
	hash_table_free(&sites->of_statements);
}

static void forget_span_site(void *context, void *entry)
{
	struct known_span_site *site = entry;

	(void)context;
	site->row = 0;
}

void span_site_writer_forget_statements(struct span_site_writer *sites)
{
	hash_table_clear(&sites->of_statements);
}

void span_site_writer_forget(struct span_site_writer *sites)
{
	span_site_writer_forget_statements(sites);
	hash_table_each(&sites->of_code, forget_span_site, NULL);
}

static struct hash site_key(uint32_t number)
{
	return hash_words((uint64_t[]){ number, 0 }, 2);
}

static struct hash wait_key(uint32_t wait)
{
	return hash_words((uint64_t[]){ wait, 3 }, 2);
}

static struct hash statement_key(uint64_t hash, bool is_preparation)
{
	return hash_words((uint64_t[]){ hash, 1 + is_preparation }, 2);
}

void span_sites_add(struct writer *writer, const struct span_site_record *published, size_t size)
{
	struct known_span_site *site;
	struct span_site_record *copy;

	site = hash_table_find(&writer->span_sites->of_code, site_key(published->number));
	copy = malloc(size);
	if (!site && copy)
		site = hash_table_add(&writer->span_sites->of_code, site_key(published->number));
	if (!site || !copy) {
		free(copy);
		return;
	}
	memcpy(copy, published, size);
	free(site->record);
	site->record = copy;
	site->row = 0;
}

/* A row of span_sites. */
struct site_row {
	const struct span_site_record *record; /* NULL: not known */
	uint64_t statement;
	bool is_preparation;
	uint32_t wait; /* its object << 8 and its cause; 0: not a wait */
};

static struct prepared *bind_site(struct writer *writer, struct prepared *prepared,
                                  const struct site_row *site)
{
	static const struct span_site_record none;
	const struct span_site_record *record = site->record ? site->record : &none;
	const char *name = record->text, *file = name + record->name_size;
	struct prepared *bind = writer_bind(writer, prepared);

	if (site->is_preparation)
		bind_text(bind, "name", "prepare", SIZE_MAX);
	else
		bind_text(bind, "name", name, record->name_size);
	bind_text(bind, "file", file, record->file_size);
	bind_number(bind, "line", record->line);
	bind_text(bind, "function", file + record->file_size, record->function_size);
	bind_number(bind, "statement", (int64_t)site->statement);
	bind_number(bind, "wait", site->wait);
	return bind;
}

static int64_t find_site_row(struct writer *writer, const struct site_row *site)
{
	int64_t row = writer_number(writer, bind_site(writer, &writer->span_sites->sql.find, site));

	return row ? row : writer_insert(writer, bind_site(writer, &writer->span_sites->sql.add, site));
}

/* Batches up to `newest` may name the row. SQLITE_OK or the error. */
static int keep_site(struct writer *writer, int64_t row, int64_t newest)
{
	return writer_run_sql(writer,
	                      "INSERT INTO statement_sites (site, newest) VALUES (?1, ?2)"
	                      " ON CONFLICT (site) DO UPDATE SET newest = max(newest, excluded.newest)",
	                      row, newest);
}

int64_t span_sites_intern(struct writer *writer, const struct span_entry *span, int64_t batch)
{
	bool is_statement = span->duration & SPAN_STATEMENT;
	struct hash_table *sites =
		is_statement ? &writer->span_sites->of_statements : &writer->span_sites->of_code;
	int64_t newest = is_statement ? batch + SITE_BATCHES : INT64_MAX;
	struct site_row site = {
		.statement = is_statement ? span[1].children : 0,
		.is_preparation = is_statement && span[1].parent,
		.wait = entry_is_wait(span) ? span->site & ~SITE_WAIT : 0,
	};
	struct hash key = is_statement ? statement_key(site.statement, site.is_preparation)
	                  : site.wait  ? wait_key(site.wait)
	                               : site_key(span->site);
	struct known_span_site *known = hash_table_find(sites, key);
	int64_t row;
	int code;

	if (known && known->row && batch <= known->newest)
		return known->row;
	site.record = known ? known->record : NULL;
	row = known && known->row ? known->row : find_site_row(writer, &site);
	if (row > 0 && is_statement && (code = keep_site(writer, row, newest)))
		return -code;
	if (row > 0 && !known)
		known = hash_table_add(sites, key);
	if (row > 0 && known) {
		known->row = row;
		known->newest = newest;
	}
	return row;
}

int span_sites_remove(struct writer *writer)
{
	int64_t oldest = writer_ask_sql(
		writer, "SELECT coalesce(min(id), 9223372036854775807) FROM span_batches", 0, 0);
	int code = writer_run_sql(
		writer,
		"DELETE FROM span_sites WHERE id IN (SELECT site FROM statement_sites WHERE newest < ?1)",
		oldest, 0);

	return code ? code
	            : writer_run_sql(writer, "DELETE FROM statement_sites WHERE newest < ?1", oldest, 0);
}
