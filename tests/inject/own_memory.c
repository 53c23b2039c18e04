/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the library's own memory functions by functions that fail if the preload decides so. The linker
 * resolves calls to them first. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Defined in inject.c; NULL if that is not preloaded. */
__attribute__((weak)) bool inject_fails(const char *function, void *address);

#define FAIL(name)                                                                                           \
	do {                                                                                                 \
		if (inject_fails && inject_fails(name, __builtin_return_address(0))) {                       \
			errno = ENOMEM;                                                                      \
			return NULL;                                                                         \
		}                                                                                            \
	} while (0)

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
	FAIL("malloc");
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	FAIL("calloc");
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	FAIL("realloc");
	return __real_realloc(memory, size);
}
