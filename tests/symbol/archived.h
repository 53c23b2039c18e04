/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of archived_one.c. */
#ifndef ARCHIVED_H
#define ARCHIVED_H

#include <stddef.h>
#include <stdint.h>

/* Keeps a function separate, whatever the compiler derives from its code. */
#ifdef __clang__
#define ARCHIVED_KEEP __attribute__((noinline))
#else
#define ARCHIVED_KEEP __attribute__((noipa))
#endif

struct archived {
	int value;
	const char *text;
	void *memory;
};

struct archived_methods {
	int (*open)(struct archived *item, int value);
	int (*add)(struct archived *item, int value);
	int (*close)(struct archived *item, int value);
};

extern const unsigned char archived_classes[256];

const struct archived_methods *archived_get_methods(void);
int (*archived_callback(void))(int);
int archived_left(const char *text);
int archived_right(const char *text);
int archived_count(const char *text);
uint32_t archived_scale(const char *text);
int archived_run(struct archived *items, size_t count);
int archived_state(void);

#endif
