/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in ClickHouse's format RowBinary: values one after the other, each in the type of its column. So one
 * writer serves old servers and new ones: a text fits into String and LowCardinality(String), labels into Map
 * and String. The format Native (blocks of columns with dictionaries) takes much more code, costs push twice
 * the CPU time, saves a new server half of its time, and has about 0.6 times the bytes with LZ4. JSONEachRow
 * costs servers twice the time of RowBinary, and has 1.2 to 1.4 times the bytes.
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
	struct clickhouse_values values[2]; /* an array's items; a map's keys and values */
};

/* False: the type is not supported. */
bool clickhouse_type_read(struct clickhouse_type *type, const char *text);

/* They write one value. A number for a column of texts is converted, and vice versa. */
void clickhouse_put_number(struct bytes *to, const struct clickhouse_values *values, int64_t number);
void clickhouse_put_real(struct bytes *to, const struct clickhouse_values *values, double number);
void clickhouse_put_text(struct bytes *to, const struct clickhouse_values *values, const char *text,
                         size_t size);

/* Writes the number of items that follow, before an array's items or a map's keys and values. */
void clickhouse_put_count(struct bytes *to, uint64_t count);

enum clickhouse_method { CLICKHOUSE_LZ4 = 0x82, CLICKHOUSE_ZSTD = 0x90 };

/* Size of a frame before it is compressed; servers use the same. */
#define CLICKHOUSE_FRAME_BYTES (1 << 20)

/* Moves the values into a frame of ClickHouse's format, for ?decompress=1. The checksum is 0 (see
 * http_native_compression_disable_checksumming_on_decompress). False: no memory. */
bool clickhouse_pack(struct bytes *from, enum clickhouse_method method, struct bytes *to);
