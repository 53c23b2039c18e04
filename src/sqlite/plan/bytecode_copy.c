/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/plan/bytecode_copy.h"

#include <stdlib.h>

#include "handler/unwind/stack_copy.h"

#define CALLED_MAX 100000u /* opcodes */

/* SQLite's structure of such bytecode begins so. It is not public, and has not changed since 3.7. */
struct bytecode_in_memory {
	const void *opcodes;
	int32_t count;
};

void *bytecode_copy_called(const struct opcode_library *library, const struct opcode_bytes *caller,
                           uint32_t *count)
{
	struct bytecode_in_memory called;
	size_t size;
	void *copy;

	if (!stack_copy_part((uintptr_t)caller->p4, &called, sizeof(called)) || called.count <= 0 ||
	    (uint32_t)called.count > CALLED_MAX)
		return NULL;
	*count = (uint32_t)called.count;
	size = *count * (size_t)library->locations.op_bytes;
	copy = malloc(size);
	if (copy && stack_copy_part((uintptr_t)called.opcodes, copy, size))
		return copy;
	free(copy);
	return NULL;
}

static bool add(struct bytecode_copy *copy, const struct opcode_library *library, const void *bytecode,
                uint32_t count, size_t most)
{
	if (count > most - copy->opcodes.count ||
	    !vector_reserve(&copy->opcodes, copy->opcodes.count + count) ||
	    !vector_push(&copy->counts, count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		copy->opcodes.items[copy->opcodes.count++] = *opcode_at(library, bytecode, i);
	return true;
}

bool bytecode_copy_read(struct bytecode_copy *copy, const struct opcode_library *library,
                        const void *bytecode, uint32_t count, size_t most)
{
	bool fine = add(copy, library, bytecode, count, most);

	for (uint32_t i = 0, size; fine && i < count; i++)
		if (opcode_calls(library, opcode_at(library, bytecode, i))) {
			void *called = bytecode_copy_called(library, opcode_at(library, bytecode, i), &size);

			fine = called && add(copy, library, called, size, most);
			free(called);
		}
	return fine;
}

void bytecode_copy_free(struct bytecode_copy *copy)
{
	vector_free(&copy->opcodes);
	vector_free(&copy->counts);
}
