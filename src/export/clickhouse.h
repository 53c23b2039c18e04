/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of rows in ClickHouse's Native format: columns one after the other, each in the type
 * that the table has. So one writer serves old servers and new ones: a text goes into String and
 * LowCardinality(String), a time into DateTime, DateTime64 and UInt64, labels into Map and String.
 *
 *	clickhouse_column_set(&column, "query", "LowCardinality(String)");
 *	clickhouse_put_text(&column.values[0], "SELECT 1", 8);
 *	clickhouse_block_write(&columns, count, rows, &bytes);
 *	clickhouse_pack(bytes, size, CLICKHOUSE_LZ4, &packed);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vector.h"

struct bytes {
	VECTOR(unsigned char) data;
	bool failed; /* no memory, kept until the end */
};

void bytes_put(struct bytes *bytes, const void *data, size_t size);

enum clickhouse_kind {
	CLICKHOUSE_NUMBER, /* `size` bytes, little-endian */
	CLICKHOUSE_FLOAT,
	CLICKHOUSE_DATE, /* these three are given as ns since 1970 */
	CLICKHOUSE_SECONDS,
	CLICKHOUSE_TIME, /* `scale` digits behind the second */
	CLICKHOUSE_TEXT,
	CLICKHOUSE_WORD, /* LowCardinality(String) */
};

/* A run of values of one type. */
struct clickhouse_values {
	enum clickhouse_kind kind;
	unsigned size, scale;
	struct bytes data;
	/* Words only: the texts of this block, and the numbers of those that came. */
	struct index index;
	struct bytes texts;
	uint32_t text_count;
	VECTOR(uint32_t) numbers;
	bool failed;
};

struct clickhouse_column {
	const char *name, *type; /* the caller's */
	bool is_array, is_map;
	struct clickhouse_values values[2]; /* of an array the items; of a map keys and values */
	VECTOR(uint64_t) ends;              /* of an array or map: how many items up to each row's last */
};

/* Makes an empty column, of a zeroed one. False: no such type is known here. */
bool clickhouse_column_set(struct clickhouse_column *column, const char *name, const char *type);
void clickhouse_column_free(struct clickhouse_column *column);

/* One value each. A number for a column of texts, or the other way around, is converted. */
void clickhouse_put_number(struct clickhouse_values *values, int64_t number);
void clickhouse_put_real(struct clickhouse_values *values, double number);
void clickhouse_put_text(struct clickhouse_values *values, const char *text, size_t size);

/* A word's number in this block, to be put again without looking it up. */
uint32_t clickhouse_word(struct clickhouse_values *values, const char *text, size_t size);
void clickhouse_put_words(struct clickhouse_values *values, const uint32_t *numbers, size_t count);

/* The row of an array or a map ends; `count` items were put for it. */
void clickhouse_end_row(struct clickhouse_column *column, size_t count);

/* False: no memory. */
bool clickhouse_block_write(struct clickhouse_column *columns, size_t count, uint64_t rows, struct bytes *to);

enum clickhouse_method { CLICKHOUSE_LZ4 = 0x82, CLICKHOUSE_ZSTD = 0x90 };

/* In ClickHouse's frames, as it takes them with ?decompress=1; the check sums are 0 (see
 * http_native_compression_disable_checksumming_on_decompress). False: no memory. */
bool clickhouse_pack(const struct bytes *from, enum clickhouse_method method, struct bytes *to);
