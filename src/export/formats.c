/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export formats: this table parses --format and prints the help.
 */
#include "export/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_OF(name) &export_##name,
static const struct export_format *const formats[] = { EXPORT_FORMATS(FORMAT_OF) };

const struct export_format *export_format_at(size_t index)
{
	return index < sizeof(formats) / sizeof(formats[0]) ? formats[index] : NULL;
}

void *export_begin(const struct export_format *format, FILE *out, const struct export_info *info)
{
	const struct {
		EXPORT_WRITER;
	} first = { out, info };
	void *writer = calloc(1, format->writer_size);

	return writer ? memcpy(writer, &first, sizeof(first)) : NULL;
}

bool export_end(const struct export_format *format, void *writer, bool complete)
{
	bool fine = format->end(writer, complete);
	int error = errno;

	free(writer);
	errno = error;
	return fine;
}
