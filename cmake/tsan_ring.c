/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ThreadSanitizer does not see how the handler's object hands records over, because the object is not
 * instrumented. For all other code, the linker replaces the object's functions by these (--wrap), which
 * report the same synchronization. The object copies with its own function, because ThreadSanitizer
 * watches memcpy().
 */
#include <sanitizer/tsan_interface.h>

#include "wire/ring_layout.h"

void *__real_ring_reserve(struct ring *ring, size_t size);
void *__wrap_ring_reserve(struct ring *ring, size_t size);
void *__real_ring_try_reserve(struct ring *ring, size_t size);
void *__wrap_ring_try_reserve(struct ring *ring, size_t size);
void __real_ring_commit(struct ring *ring, void *payload, unsigned kind);
void __wrap_ring_commit(struct ring *ring, void *payload, unsigned kind);

void *handler_memcpy(void *to, const void *from, size_t size);

__attribute__((no_sanitize("thread"), optimize("no-tree-loop-distribute-patterns"))) void *
handler_memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

/* Loads the tail again: the reader has released the space up to it. */
void *__wrap_ring_reserve(struct ring *ring, size_t size)
{
	void *payload = __real_ring_reserve(ring, size);

	(void)ring_load_tail(ring);
	return payload;
}

void *__wrap_ring_try_reserve(struct ring *ring, size_t size)
{
	void *payload = __real_ring_try_reserve(ring, size);

	(void)ring_load_tail(ring);
	return payload;
}

/* The header publishes the payload. */
void __wrap_ring_commit(struct ring *ring, void *payload, unsigned kind)
{
	__tsan_release((char *)payload - RING_WORD);
	__real_ring_commit(ring, payload, kind);
}
