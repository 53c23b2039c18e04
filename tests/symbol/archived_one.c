/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with static functions, compiled once as a shared object and once as an archive (test_archive.c).
 * With ARCHIVED_VERSION 2, changed functions have other names, so that a name from the wrong version is
 * noticed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archived.h"

/* Twins have the same code; only their callers distinguish them. */
ARCHIVED_KEEP static int twin_left(const char *text)
{
	return (int)strlen(text) + 1;
}

ARCHIVED_KEEP static int twin_right(const char *text)
{
	return (int)strlen(text) + 1;
}

/* These functions are called only through a table. */
static int method_open(struct archived *item, int value)
{
	item->value = value;
	item->text = "opened";
	return 0;
}

static int method_add(struct archived *item, int value)
{
	item->value += value;
	return item->value < 0 ? -1 : 0;
}

static int method_close(struct archived *item, int value)
{
	free(item->memory);
	item->memory = NULL;
	return value;
}

static const struct archived_methods methods = { method_open, method_add, method_close };

/* Uses exported data, through the offset table only in the shared object. */
ARCHIVED_KEEP static int count_known(const unsigned char *text)
{
	int count = 0;
	for (; *text; text++)
		count += archived_classes[*text];
	return count;
}

#if ARCHIVED_VERSION == 1
ARCHIVED_KEEP static uint32_t scale_by_seven(uint32_t value, const char *text)
{
	for (; *text; text++)
		value = value * 7 + (unsigned char)*text;
	return value;
}
#define SCALE scale_by_seven
#else
ARCHIVED_KEEP static uint32_t scale_by_eleven(uint32_t value, const char *text)
{
	for (; *text; text++)
		value = value * 11 + (unsigned char)*text;
	return value;
}
#define SCALE scale_by_eleven
#endif

/* Too short to prove anything, and called only through the pointer that archived_callback() returns. */
static int short_one(int value)
{
	return value;
}

int (*archived_callback(void))(int)
{
	return short_one;
}

const struct archived_methods *archived_get_methods(void)
{
	return &methods;
}

int archived_left(const char *text)
{
	return twin_left(text) * 3;
}

int archived_right(const char *text)
{
	return twin_right(text) * 5;
}

int archived_count(const char *text)
{
	return count_known((const unsigned char *)text) + 1;
}

uint32_t archived_scale(const char *text)
{
	return SCALE(1, text) ^ 0x55u;
}
