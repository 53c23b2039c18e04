/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gets memory for its sentence at its first error. A thread-local sentence would take most
 * of the space that the loader reserves for the thread-locals of libraries that are loaded later.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/thread_key.h"

#define SENTENCE_SIZE 512

static __thread char *newest; /* NULL: none yet, or no memory */
static pthread_key_t key;
static bool has_key;
static struct once once;

static void on_thread_end(void *unused)
{
	(void)unused;
	free(newest);
	newest = NULL;
}

static void make_key(void)
{
	has_key = thread_key_create(&key, on_thread_end) == 0;
}

static bool has_room(void)
{
	if (newest)
		return true;
	once_do(&once, make_key);
	newest = has_key ? malloc(SENTENCE_SIZE) : NULL;
	if (newest && pthread_setspecific(key, newest) != 0)
		on_thread_end(NULL);
	return newest != NULL;
}

int error_set(int code, const char *format, ...)
{
	va_list arguments;

	if (!has_room())
		return code;
	va_start(arguments, format);
	vsnprintf(newest, SENTENCE_SIZE, format, arguments);
	va_end(arguments);
	return code;
}

int error_detach(int code, char *sentence, const char *fallback)
{
	error_set(code, "%s", sentence ? sentence : fallback);
	free(sentence);
	return code;
}

const char *qp_error(void)
{
	return newest ? newest : "";
}
