/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For ThreadSanitizer, which does not see the handler's object hand records over, as that is not
 * instrumented: the linker puts these around its functions for all other code (--wrap). They report no
 * more than the object does. It copies with a function of its own, as ThreadSanitizer watches memcpy().
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

/* The room is behind the tail that was read. */
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

/* Publishes the payload by its header. */
void __wrap_ring_commit(struct ring *ring, void *payload, unsigned kind)
{
	__tsan_release((char *)payload - RING_WORD);
	__real_ring_commit(ring, payload, kind);
}
