/* SPDX-License-Identifier: Apache-2.0 */
#include "export/clickhouse.h"

#include <inttypes.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FRAME_HEAD 25 /* checksum, method, both sizes */
#define ZSTD_LEVEL 1

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

/* --- types ------------------------------------------------------------------------ */

/* Reads the type at the beginning of `*text`, and advances past it and the text `end` after it. */
static bool read_values(struct clickhouse_values *values, const char **text, const char *end)
{
	static const struct {
		const char *name;
		struct clickhouse_values values;
	} types[] = {
		{ "UInt8", { CLICKHOUSE_NUMBER, 1 } },
		{ "UInt16", { CLICKHOUSE_NUMBER, 2 } },
		{ "UInt32", { CLICKHOUSE_NUMBER, 4 } },
		{ "UInt64", { CLICKHOUSE_NUMBER, 8 } },
		{ "Int8", { CLICKHOUSE_NUMBER, 1 } },
		{ "Int16", { CLICKHOUSE_NUMBER, 2 } },
		{ "Int32", { CLICKHOUSE_NUMBER, 4 } },
		{ "Int64", { CLICKHOUSE_NUMBER, 8 } },
		{ "Float64", { CLICKHOUSE_FLOAT, 8 } },
		{ "String", { CLICKHOUSE_TEXT, 0 } },
		{ "LowCardinality(String)", { CLICKHOUSE_TEXT, 0 } },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t size = strlen(types[i].name);

		if (strncmp(*text, types[i].name, size) != 0 || strncmp(*text + size, end, strlen(end)) != 0)
			continue;
		*values = types[i].values;
		*text += size + strlen(end);
		return true;
	}
	return false;
}

bool clickhouse_type_read(struct clickhouse_type *type, const char *text)
{
	static const char array[] = "Array(", map[] = "Map(";

	*type = (struct clickhouse_type){ .is_array = !strncmp(text, array, sizeof(array) - 1),
		                          .is_map = !strncmp(text, map, sizeof(map) - 1) };
	text += type->is_array ? sizeof(array) - 1 : type->is_map ? sizeof(map) - 1 : 0;
	if (type->is_map && !read_values(&type->values[0], &text, ", "))
		return false;
	return read_values(&type->values[type->is_map], &text, type->is_array || type->is_map ? ")" : "") &&
	       !*text;
}

/* --- values ----------------------------------------------------------------------- */

void clickhouse_put_count(struct bytes *to, uint64_t count)
{
	unsigned char digits[10];
	size_t size = 0;

	for (; count >= 0x80; count >>= 7)
		digits[size++] = (unsigned char)(count | 0x80);
	digits[size++] = (unsigned char)count;
	bytes_put(to, digits, size);
}

void clickhouse_put_number(struct bytes *to, const struct clickhouse_values *values, int64_t number)
{
	char text[24];

	switch (values->kind) {
	case CLICKHOUSE_NUMBER:
		bytes_put(to, &number, values->size);
		break; /* x86-64, aarch64: little-endian */
	case CLICKHOUSE_FLOAT: clickhouse_put_real(to, values, (double)number); break;
	case CLICKHOUSE_TEXT:
		clickhouse_put_text(to, values, text,
		                    (size_t)snprintf(text, sizeof(text), "%" PRId64, number));
		break;
	}
}

void clickhouse_put_real(struct bytes *to, const struct clickhouse_values *values, double number)
{
	if (values->kind == CLICKHOUSE_FLOAT)
		bytes_put(to, &number, sizeof(number));
	else
		clickhouse_put_number(to, values, (int64_t)number);
}

void clickhouse_put_text(struct bytes *to, const struct clickhouse_values *values, const char *text,
                         size_t size)
{
	char number[24];

	if (values->kind == CLICKHOUSE_TEXT) {
		clickhouse_put_count(to, size);
		bytes_put(to, text, size);
		return;
	}
	snprintf(number, sizeof(number), "%.*s", (int)(size < 23 ? size : 23), text);
	clickhouse_put_number(to, values, strtoll(number, NULL, 10));
}

/* --- compression ------------------------------------------------------------------ */

bool clickhouse_pack(struct bytes *from, enum clickhouse_method method, struct bytes *to)
{
	const char *source = (const char *)from->data.items;
	size_t size = from->data.count, packed;
	size_t most =
		method == CLICKHOUSE_ZSTD ? ZSTD_compressBound(size) : (size_t)LZ4_compressBound((int)size);

	if (from->failed || !vector_reserve(&to->data, to->data.count + FRAME_HEAD + most))
		return false;
	unsigned char *head = to->data.items + to->data.count;
	char *target = (char *)head + FRAME_HEAD;
	if (method == CLICKHOUSE_ZSTD)
		packed = ZSTD_compress(target, most, source, size, ZSTD_LEVEL);
	else
		packed = (size_t)LZ4_compress_default(source, target, (int)size, (int)most);
	if (method == CLICKHOUSE_ZSTD && ZSTD_isError(packed))
		return false;
	/* The packed size includes the head, except the check sum. */
	uint32_t sizes[2] = { (uint32_t)packed + 9, (uint32_t)size };
	memset(head, 0, 16);
	head[16] = (unsigned char)method;
	memcpy(head + 17, sizes, sizeof(sizes));
	to->data.count += FRAME_HEAD + packed;
	from->data.count = 0;
	return true;
}
