/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optional fields of a sample's record, as its reader sees them.
 */
#pragma once

#include <stddef.h>

#include "wire/record.h"

/* The field at `*at`, which moves on to the next one; NULL when none is left before
 * `end`. */
static inline const struct sample_field *sample_field_next(const void **at, const void *end)
{
	const struct sample_field *field = *at;
	size_t left = (size_t)((const char *)end - (const char *)*at);

	if (left < sizeof(*field) || field->size > left - sizeof(*field))
		return NULL;
	size_t size = SAMPLE_FIELD_BYTES(field->size);
	*at = (const char *)*at + (size < left ? size : left);
	return field;
}
