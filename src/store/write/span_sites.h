/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where spans begin: a row of span_sites for a place in the host's code, a statement or a kind of wait.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "store/write/prepared.h"
#include "wire/span_record.h"

struct writer;

struct span_site_writer {
	struct hash_table of_code, of_statements; /* by number or wait; by the statement's hash */
	struct {
		struct prepared find, add;
	} sql;
};

extern const struct span_site_writer span_site_writer_new;
void span_site_writer_free(struct span_site_writer *sites);

/* The second one forgets only statements' sites, which retention may have removed. */
void span_site_writer_forget(struct span_site_writer *sites);
void span_site_writer_forget_statements(struct span_site_writer *sites);

/* Remembers the site of a number permanently. May be called at any time. */
void span_sites_add(struct writer *writer, const struct span_site_record *record, size_t size);

/* Inside a transaction: the row of the span's site, > 0; otherwise minus SQLite's code. batch: the one that
 * names the site. */
int64_t span_sites_intern(struct writer *writer, const struct span_entry *span, int64_t batch);

/* Inside a transaction: removes the sites of statements that no batch can still name. SQLITE_OK or the
 * error. */
int span_sites_remove(struct writer *writer);
