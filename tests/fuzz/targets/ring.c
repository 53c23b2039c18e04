/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For libFuzzer: the ring of a killed or hostile process.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/ring_layout.h"
#include "collect/ring_reader.h"
#include "collect/ring_remains.h"
#include "target.h"

/* An input begins with the reader's words, which the target reads first, as multiples of words. The rest
 * becomes the block's beginning. */
struct input {
	uint16_t head, next, taken, tail;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *memory;
	struct input input;

	if (size < sizeof(input))
		return 0;
	memcpy(&input, data, sizeof(input));
	data += sizeof(input);
	size -= sizeof(input);
	if (!memory)
		memory = mmap(NULL, ring_memory_bytes(RING_MIN_BYTES), PROT_READ | PROT_WRITE,
		              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 0, ring_memory_bytes(RING_MIN_BYTES));
	struct ring *ring = ring_init(memory, RING_MIN_BYTES, 0);
	memcpy(ring->block, data, size < ring->bytes ? size : ring->bytes);
	__atomic_store_n(&ring->head, input.head * RING_WORD, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->next, input.next * RING_WORD, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->taken, input.taken * RING_WORD, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->tail, input.tail * RING_WORD, __ATOMIC_SEQ_CST);

	ring = ring_remains_find(memory, ring_memory_bytes(RING_MIN_BYTES));
	if (ring) {
		ring_remains_sound(ring);
		ring_remains_repair(ring);
		/* A repaired ring must be readable to its end. */
		unsigned kind, sum = 0;
		const unsigned char *payload;

		while ((payload = ring_peek(ring, &kind, &size))) {
			for (size_t i = 0; i < size; i++)
				sum += payload[i];
			ring_pass(ring);
		}
		if (sum == 1)
			memory[0] = (char)sum; /* so that the compiler keeps all reads */
	}
	return 0;
}
