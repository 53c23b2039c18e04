/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in ClickHouse's format RowBinary: values one after the other, each in the type that the table has. So
 * one writer serves old servers and new ones: a text goes into String and LowCardinality(String), labels into
 * Map and String. The same rows in Native, blocks of columns with dictionaries, are much more code to write,
 * take push twice the CPU time to make and a new server half of it to insert; with LZ4 they have about 0.6
 * times the bytes. JSONEachRow takes servers twice the time of RowBinary, and has 1.2 to 1.4 times the bytes.
 *
 *	clickhouse_type_read(&type, "LowCardinality(String)");
 *	clickhouse_put_text(&rows, &type.values[0], "SELECT 1", 8);
 *	clickhouse_pack(&rows, CLICKHOUSE_LZ4, &packed);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct bytes {
	VECTOR(unsigned char) data;
	bool failed; /* no memory, kept until the end */
};

void bytes_put(struct bytes *bytes, const void *data, size_t size);

struct clickhouse_values {
	enum { CLICKHOUSE_NUMBER, CLICKHOUSE_FLOAT, CLICKHOUSE_TEXT } kind;
	unsigned size; /* of a number, little-endian */
};

struct clickhouse_type {
	bool is_array, is_map;
	struct clickhouse_values values[2]; /* of an array the items; of a map keys and values */
};

/* False: no such type is known here. */
bool clickhouse_type_read(struct clickhouse_type *type, const char *text);

/* One value each. A number for a column of texts, or the other way around, is converted. */
void clickhouse_put_number(struct bytes *to, const struct clickhouse_values *values, int64_t number);
void clickhouse_put_real(struct bytes *to, const struct clickhouse_values *values, double number);
void clickhouse_put_text(struct bytes *to, const struct clickhouse_values *values, const char *text,
                         size_t size);

/* Before the items of an array, or the keys and values of a map: how many there are. */
void clickhouse_put_count(struct bytes *to, uint64_t count);

enum clickhouse_method { CLICKHOUSE_LZ4 = 0x82, CLICKHOUSE_ZSTD = 0x90 };

/* What a frame has before it is compressed, as servers write them. */
#define CLICKHOUSE_FRAME_BYTES (1 << 20)

/* Moves the values into a frame of ClickHouse's, as it takes them with ?decompress=1; the check sum is 0 (see
 * http_native_compression_disable_checksumming_on_decompress). False: no memory. */
bool clickhouse_pack(struct bytes *from, enum clickhouse_method method, struct bytes *to);
