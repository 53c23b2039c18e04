/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL values in inputs: a byte for the type and, except for NULL, one for the length, then that many bytes.
 * Texts and blobs contain no slash, so files are created in the working directory only.
 */
#ifndef TESTS_FUZZ_VALUE_H
#define TESTS_FUZZ_VALUE_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A value from an input. */
struct value {
	enum { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB, VALUE_TYPES } type;
	int64_t integer; /* of the first bytes */
	size_t size;
	char *text; /* malloc'ed: `size` bytes and a zero */
};

static inline struct value take_value(const uint8_t **data, size_t *size)
{
	const uint8_t *bytes = *data;
	size_t head = *size < 2 ? *size : 2, room = *size - head, length = head == 2 ? bytes[1] : 0, used;
	struct value value = { .type = *size ? bytes[0] % VALUE_TYPES : VALUE_NULL };

	value.size = length < room ? length : room;
	value.text = malloc(value.size + 1);
	if (!value.text)
		abort();
	memcpy(value.text, bytes + head, value.size);
	memcpy(&value.integer, bytes + head, value.size < 8 ? value.size : 8);
	value.text[value.size] = 0;
	for (size_t i = 0; i < value.size; i++)
		if (value.text[i] == '/')
			value.text[i] = '_';
	used = value.type == VALUE_NULL ? head > 0 : head + value.size;
	*data += used;
	*size -= used;
	return value;
}

/* Binds the value and takes ownership of its text. */
static inline void bind_value(sqlite3_stmt *stmt, int number, struct value value)
{
	double real;

	memcpy(&real, &value.integer, sizeof(real));
	switch (value.type) {
	case VALUE_INTEGER: sqlite3_bind_int64(stmt, number, value.integer); break;
	case VALUE_REAL: sqlite3_bind_double(stmt, number, real); break;
	case VALUE_TEXT: sqlite3_bind_text(stmt, number, value.text, (int)value.size, free); return;
	case VALUE_BLOB: sqlite3_bind_blob(stmt, number, value.text, (int)value.size, free); return;
	default: break;
	}
	free(value.text);
}

#endif
