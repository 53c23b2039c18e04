/* SPDX-License-Identifier: Apache-2.0 */
#include "export/clickhouse.h"

#include <inttypes.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/hash.h"

#define FRAME_BYTES (1 << 20) /* of what is compressed at once; what servers write, too */
#define FRAME_HEAD 25         /* check sum, method, both sizes */
#define ZSTD_LEVEL 1

#define NS_A_SECOND INT64_C(1000000000)
#define SECONDS_A_DAY 86400

/* LowCardinality: the version of its keys, and that a block brings all of them. */
#define WORDS_VERSION 1
#define WORDS_ALL ((UINT64_C(1) << 9) | (UINT64_C(1) << 10))

void bytes_put(struct bytes *bytes, const void *data, size_t size)
{
	if (!size)
		return;
	if (bytes->failed || !vector_reserve(&bytes->data, bytes->data.count + size)) {
		bytes->failed = true;
		return;
	}
	memcpy(bytes->data.items + bytes->data.count, data, size);
	bytes->data.count += size;
}

static void put_size(struct bytes *bytes, uint64_t size)
{
	unsigned char digits[10];
	size_t count = 0;

	for (; size >= 0x80; size >>= 7)
		digits[count++] = (unsigned char)(size | 0x80);
	digits[count++] = (unsigned char)size;
	bytes_put(bytes, digits, count);
}

static void put_counted(struct bytes *bytes, const char *text, size_t size)
{
	put_size(bytes, size);
	bytes_put(bytes, text, size);
}

/* --- types ------------------------------------------------------------------------ */

static bool set_values(struct clickhouse_values *values, const char *type, size_t size)
{
	static const struct {
		const char *name;
		enum clickhouse_kind kind;
		unsigned size;
	} types[] = {
		{ "UInt8", CLICKHOUSE_NUMBER, 1 },  { "UInt16", CLICKHOUSE_NUMBER, 2 },
		{ "UInt32", CLICKHOUSE_NUMBER, 4 }, { "UInt64", CLICKHOUSE_NUMBER, 8 },
		{ "Int8", CLICKHOUSE_NUMBER, 1 },   { "Int16", CLICKHOUSE_NUMBER, 2 },
		{ "Int32", CLICKHOUSE_NUMBER, 4 },  { "Int64", CLICKHOUSE_NUMBER, 8 },
		{ "Float64", CLICKHOUSE_FLOAT, 8 }, { "Date", CLICKHOUSE_DATE, 2 },
		{ "String", CLICKHOUSE_TEXT, 0 },   { "LowCardinality(String)", CLICKHOUSE_WORD, 0 },
	};
	static const char time[] = "DateTime64(", seconds[] = "DateTime";

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == size && !memcmp(types[i].name, type, size)) {
			values->kind = types[i].kind;
			values->size = types[i].size;
			return true;
		}
	if (size > sizeof(time) && !memcmp(type, time, sizeof(time) - 1)) {
		values->kind = CLICKHOUSE_TIME;
		values->scale = (unsigned)(type[sizeof(time) - 1] - '0');
		return values->scale <= 9;
	}
	/* It may name a time zone. */
	if (size < sizeof(seconds) - 1 || memcmp(type, seconds, sizeof(seconds) - 1) != 0 ||
	    (type[sizeof(seconds) - 1] != '(' && size != sizeof(seconds) - 1))
		return false;
	values->kind = CLICKHOUSE_SECONDS;
	return true;
}

/* Where the first type of a list ends. */
static size_t find_comma(const char *types)
{
	int depth = 0;
	size_t at = 0;

	for (; types[at] && (depth || types[at] != ','); at++)
		depth += (types[at] == '(') - (types[at] == ')');
	return at;
}

static bool set_type(struct clickhouse_column *column, const char *type)
{
	static const char array[] = "Array(", map[] = "Map(";
	size_t size = strlen(type);

	if (!strncmp(type, array, sizeof(array) - 1)) {
		column->is_array = true;
		return set_values(&column->values[0], type + sizeof(array) - 1, size - sizeof(array));
	}
	if (!strncmp(type, map, sizeof(map) - 1)) {
		const char *keys = type + sizeof(map) - 1;
		size_t comma = find_comma(keys);

		column->is_map = true;
		if (strncmp(keys + comma, ", ", 2) != 0)
			return false;
		return set_values(&column->values[0], keys, comma) &&
		       set_values(&column->values[1], keys + comma + 2, strlen(keys + comma + 2) - 1);
	}
	return set_values(&column->values[0], type, size);
}

/* Word 0 is the empty one, as in all of ClickHouse's own blocks. */
static void begin_values(struct clickhouse_values *values)
{
	if (values->kind == CLICKHOUSE_WORD)
		clickhouse_word(values, "", 0);
}

bool clickhouse_column_set(struct clickhouse_column *column, const char *name, const char *type)
{
	column->name = name;
	column->type = type;
	if (!set_type(column, type))
		return false;
	begin_values(&column->values[0]);
	begin_values(&column->values[1]);
	return true;
}

void clickhouse_column_free(struct clickhouse_column *column)
{
	for (int i = 0; i < 2; i++) {
		vector_free(&column->values[i].data.data);
		vector_free(&column->values[i].texts.data);
		vector_free(&column->values[i].numbers);
		index_free(&column->values[i].index);
	}
	vector_free(&column->ends);
}

/* --- values ----------------------------------------------------------------------- */

static int64_t floor_of(int64_t number, int64_t by)
{
	return number / by - (number % by < 0);
}

static int64_t power_of_ten(unsigned exponent)
{
	int64_t power = 1;

	while (exponent--)
		power *= 10;
	return power;
}

void clickhouse_put_number(struct clickhouse_values *values, int64_t number)
{
	char text[24];
	int64_t put = number;
	unsigned size = 8;

	switch (values->kind) {
	case CLICKHOUSE_NUMBER: size = values->size; break;
	case CLICKHOUSE_FLOAT: clickhouse_put_real(values, (double)number); return;
	case CLICKHOUSE_DATE:
		put = floor_of(number, NS_A_SECOND * SECONDS_A_DAY);
		size = 2;
		break;
	case CLICKHOUSE_SECONDS:
		put = floor_of(number, NS_A_SECOND);
		size = 4;
		break;
	case CLICKHOUSE_TIME: put = floor_of(number, power_of_ten(9 - values->scale)); break;
	case CLICKHOUSE_TEXT:
	case CLICKHOUSE_WORD:
		clickhouse_put_text(values, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, number));
		return;
	}
	bytes_put(&values->data, &put, size); /* x86-64 and aarch64 are little-endian */
}

void clickhouse_put_real(struct clickhouse_values *values, double number)
{
	if (values->kind == CLICKHOUSE_FLOAT)
		bytes_put(&values->data, &number, sizeof(number));
	else
		clickhouse_put_number(values, (int64_t)number);
}

void clickhouse_put_text(struct clickhouse_values *values, const char *text, size_t size)
{
	char number[24];
	uint32_t word;

	switch (values->kind) {
	case CLICKHOUSE_TEXT: put_counted(&values->data, text, size); return;
	case CLICKHOUSE_WORD:
		word = clickhouse_word(values, text, size);
		clickhouse_put_words(values, &word, 1);
		return;
	default:
		snprintf(number, sizeof(number), "%.*s", (int)(size < 23 ? size : 23), text);
		clickhouse_put_number(values, strtoll(number, NULL, 10));
	}
}

uint32_t clickhouse_word(struct clickhouse_values *values, const char *text, size_t size)
{
	struct hash key = hash_bytes(text, size);
	uint32_t number = index_find(&values->index, key);

	if (number != INDEX_NONE)
		return number;
	number = index_add(&values->index, key);
	if (number == INDEX_NONE) {
		values->failed = true;
		return 0;
	}
	put_counted(&values->texts, text, size);
	return values->text_count++;
}

void clickhouse_put_words(struct clickhouse_values *values, const uint32_t *numbers, size_t count)
{
	if (!vector_reserve(&values->numbers, values->numbers.count + count)) {
		values->failed = true;
		return;
	}
	memcpy(values->numbers.items + values->numbers.count, numbers, count * sizeof(*numbers));
	values->numbers.count += count;
}

void clickhouse_end_row(struct clickhouse_column *column, size_t count)
{
	uint64_t before = column->ends.count ? column->ends.items[column->ends.count - 1] : 0;

	if (!vector_push(&column->ends, before + count))
		column->values[0].failed = true;
}

/* --- blocks ----------------------------------------------------------------------- */

static void put_u64(struct bytes *to, uint64_t number)
{
	bytes_put(to, &number, sizeof(number));
}

static void write_words(const struct clickhouse_values *values, struct bytes *to)
{
	unsigned log = values->text_count <= 0x100 ? 0 : values->text_count <= 0x10000 ? 1 : 2;

	put_u64(to, WORDS_ALL | log);
	put_u64(to, values->text_count);
	bytes_put(to, values->texts.data.items, values->texts.data.count);
	put_u64(to, values->numbers.count);
	for (size_t i = 0; i < values->numbers.count; i++)
		bytes_put(to, &values->numbers.items[i], (size_t)1 << log);
}

static void write_values(const struct clickhouse_values *values, struct bytes *to)
{
	to->failed |= values->failed || values->data.failed || values->texts.failed;
	if (values->kind != CLICKHOUSE_WORD)
		bytes_put(to, values->data.data.items, values->data.data.count);
	else if (values->numbers.count) /* none are written as nothing at all */
		write_words(values, to);
}

static void write_column(const struct clickhouse_column *column, struct bytes *to)
{
	int parts = column->is_map ? 2 : 1;

	put_counted(to, column->name, strlen(column->name));
	put_counted(to, column->type, strlen(column->type));
	for (int i = 0; i < parts; i++)
		if (column->values[i].kind == CLICKHOUSE_WORD)
			put_u64(to, WORDS_VERSION);
	if (column->is_array || column->is_map)
		bytes_put(to, column->ends.items, column->ends.count * sizeof(*column->ends.items));
	for (int i = 0; i < parts; i++)
		write_values(&column->values[i], to);
}

bool clickhouse_block_write(struct clickhouse_column *columns, size_t count, uint64_t rows, struct bytes *to)
{
	put_size(to, count);
	put_size(to, rows);
	for (size_t i = 0; i < count; i++)
		write_column(&columns[i], to);
	return !to->failed;
}

/* --- compression ------------------------------------------------------------------ */

bool clickhouse_pack(const struct bytes *from, enum clickhouse_method method, struct bytes *to)
{
	size_t most = method == CLICKHOUSE_ZSTD ? ZSTD_compressBound(FRAME_BYTES)
	                                        : (size_t)LZ4_compressBound(FRAME_BYTES);

	for (size_t at = 0; at < from->data.count; at += FRAME_BYTES) {
		size_t left = from->data.count - at, size = left < FRAME_BYTES ? left : FRAME_BYTES;
		const char *source = (const char *)from->data.items + at;
		size_t packed;

		if (!vector_reserve(&to->data, to->data.count + FRAME_HEAD + most))
			return false;
		unsigned char *head = to->data.items + to->data.count;
		char *target = (char *)head + FRAME_HEAD;
		if (method == CLICKHOUSE_ZSTD)
			packed = ZSTD_compress(target, most, source, size, ZSTD_LEVEL);
		else
			packed = (size_t)LZ4_compress_default(source, target, (int)size, (int)most);
		if (method == CLICKHOUSE_ZSTD && ZSTD_isError(packed))
			return false;
		/* The size of what is packed counts the head, without the check sum. */
		uint32_t sizes[2] = { (uint32_t)packed + 9, (uint32_t)size };
		memset(head, 0, 16);
		head[16] = (unsigned char)method;
		memcpy(head + 17, sizes, sizeof(sizes));
		to->data.count += FRAME_HEAD + packed;
	}
	return true;
}
