/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/texts.h"

#include <string.h>

#include "query/normalize.h"
#include "store/write/labels.h"
#include "store/write/writer.h"

struct known_text {
	struct hash key;
	int64_t row;
};

const struct text_writer text_writer_new = {
	.known = HASH_TABLE_OF(struct known_text, 1 << 14),
	.libraries = HASH_TABLE_OF(struct known_text, 16),
	.sql = {
		.find.sql = "SELECT id FROM statements WHERE hash = :hash AND query = :query AND is_cut = :is_cut",
		.add.sql = "INSERT INTO statements (hash, query, is_cut, normalized_query_hash, labels) VALUES"
		           " (:hash, :query, :is_cut, :normalized_query_hash, :labels)",
		.remove_unused.sql =
			"DELETE FROM statements WHERE id = :id"
			" AND NOT EXISTS (SELECT 1 FROM queries WHERE statement = :id)"
			" AND NOT EXISTS (SELECT 1 FROM programs WHERE statement = :id)"
			" AND NOT EXISTS (SELECT 1 FROM statement_counters WHERE statement = :id)",
		.find_library.sql = "SELECT id FROM libraries WHERE path = :path AND version = :version",
		.add_library.sql = "INSERT INTO libraries (path, version) VALUES (:path, :version)",
	},
};

static struct prepared *bind_statement(struct writer *writer, struct prepared *prepared, struct hash key,
                                       const char *text, size_t size, bool is_cut)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_number(bind, "hash", (int64_t)key.first);
	bind_text(bind, "query", text, size);
	bind_number(bind, "is_cut", is_cut);
	return bind;
}

int64_t intern_statement(struct writer *writer, const char *text, size_t size, bool is_cut, bool stays,
                         uint64_t shape)
{
	struct text_writer *texts = writer->texts;
	struct hash key = hash_bytes(text, size);
	struct known_text *known;
	struct prepared *add;
	int64_t row, labels;

	key.second ^= (uint64_t)is_cut << 1;
	known = hash_table_find(&texts->known, key);
	if (known)
		return known->row;
	row = writer_number(writer, bind_statement(writer, &texts->sql.find, key, text, size, is_cut));
	if (!row) {
		labels = labels_of_comments(writer, text, size);
		if (labels < 0)
			return labels;
		add = bind_statement(writer, &texts->sql.add, key, text, size, is_cut);
		bind_number(add, "normalized_query_hash",
		            (int64_t)(shape ? shape : normalize_hash(text, size)));
		bind_number(add, "labels", labels);
		row = writer_insert(writer, add);
		writer->bytes += size + 40;
	}
	if (row > 0 && stays && (known = hash_table_add(&texts->known, key)))
		known->row = row;
	return row;
}

int intern_remove_unused(struct writer *writer, int64_t statement)
{
	struct prepared *remove = writer_bind(writer, &writer->texts->sql.remove_unused);

	bind_number(remove, "id", statement);
	return writer_run(writer, remove);
}

static struct prepared *bind_library(struct writer *writer, struct prepared *prepared, const char *text,
                                     size_t version, size_t size)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_text(bind, "path", text + version + 1, size - version - 1);
	bind_text(bind, "version", text, version);
	return bind;
}

int64_t intern_library(struct writer *writer, const char *text, size_t size)
{
	struct text_writer *texts = writer->texts;
	struct hash key = hash_bytes(text, size);
	struct known_text *known = hash_table_find(&texts->libraries, key);
	const char *space = size ? memchr(text, ' ', size) : NULL;
	size_t version = space ? (size_t)(space - text) : 0;
	int64_t row;

	if (known || !space)
		return known ? known->row : 0;
	row = writer_number(writer, bind_library(writer, &texts->sql.find_library, text, version, size));
	if (!row)
		row = writer_insert(writer,
		                    bind_library(writer, &texts->sql.add_library, text, version, size));
	if (row > 0 && (known = hash_table_add(&texts->libraries, key)))
		known->row = row;
	return row;
}
