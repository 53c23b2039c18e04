/* SPDX-License-Identifier: Apache-2.0 */
#include "span/traceparent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SIZE (QP_TRACEPARENT_BYTES - 1)

static bool parse_hex(const char *text, int digits, uint64_t *number)
{
	static const char hex[] = "0123456789abcdef";

	*number = 0;
	for (int i = 0; i < digits; i++) {
		const char *found = text[i] ? strchr(hex, text[i]) : NULL;

		if (!found)
			return false;
		*number = *number << 4 | (uint64_t)(found - hex);
	}
	return true;
}

bool traceparent_parse(const char *text, struct span_link *link)
{
	uint64_t version, flags;

	if (strnlen(text, SIZE) < SIZE || text[2] != '-' || text[35] != '-' || text[52] != '-')
		return false;
	if (!parse_hex(text, 2, &version) || !parse_hex(text + 3, 16, &link->trace_hi) ||
	    !parse_hex(text + 19, 16, &link->trace_lo) || !parse_hex(text + 36, 16, &link->parent) ||
	    !parse_hex(text + 53, 2, &flags))
		return false;
	if (version == 0xff || (text[SIZE] && (version == 0 || text[SIZE] != '-')))
		return false;
	return (link->trace_hi || link->trace_lo) && link->parent;
}

void traceparent_write(const struct span_link *link, char text[QP_TRACEPARENT_BYTES])
{
	snprintf(text, QP_TRACEPARENT_BYTES, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01",
	         link->trace_hi, link->trace_lo, link->parent);
}
