/*
 * Texts, each kept once and numbered from 0 as they come.
 */
#ifndef QUERYPROF_EXPORT_STRINGS_H
#define QUERYPROF_EXPORT_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"

#define STRINGS_NO_MEMORY UINT32_MAX

struct strings {
	struct hash_table table;
	char **texts; /* by number */
	uint32_t count, capacity;
};

/* The text's number; STRINGS_NO_MEMORY. Start with a zeroed struct. */
uint32_t strings_add(struct strings *strings, const char *text);

/* The same, made valid UTF-8: what is none becomes U+FFFD. The text kept, or NULL;
 * it does not move when others come. */
const char *strings_keep(struct strings *strings, const char *text);

void strings_free(struct strings *strings);

#endif
