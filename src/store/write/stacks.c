/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/stacks.h"

#include "store/write/space.h"
#include "store/write/writer.h"

#define STACK_BYTES 500 /* of an ordinary one */

struct known_stack {
	struct hash key;
	int64_t row, epoch;
	uint32_t generation; /* of the code map that its addresses were read with */
};

const struct stack_writer stack_writer_new = {
	.known = HASH_TABLE_OF(struct known_stack, 1 << 18),
	.sql = {
		.find.sql = "SELECT id FROM stacks WHERE hash = :hash AND trace = :trace",
		.add.sql = "INSERT INTO stacks (hash, epoch, trace) VALUES (:hash, :epoch, :trace)",
		.touch.sql = "UPDATE stacks SET epoch = :epoch WHERE id = :id",
	},
};

struct removed_stacks {
	int64_t epoch;
	size_t left;
};

static void forget_old_stack(void *context, void *entry)
{
	struct removed_stacks *removed = context;
	struct known_stack *stack = entry;

	if (stack->epoch < removed->epoch)
		stack->row = 0;
	removed->left += stack->row != 0;
}

void stack_writer_forget(struct stack_writer *stacks, int64_t epoch)
{
	struct removed_stacks removed = { .epoch = epoch };

	hash_table_each(&stacks->known, forget_old_stack, &removed);
	if (removed.left < stacks->known.count / 2) /* not if most stacks do not recur */
		hash_table_clear(&stacks->known);
}

static char *write_number(char *at, uint64_t number)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*at++ = digits[--count];
	return at;
}

/* The stack in the form of the file: JSON text in the file's address space. */
static int write_stack(struct writer *writer, const struct sample_record *sample, size_t depth, size_t *size)
{
	char *at = writer->stacks->text;

	*at++ = '[';
	for (size_t i = 0; i < depth; i++) {
		uint64_t address;
		int code = space_map_address(writer, sample->addresses[i], sample->generation, &address);

		if (code)
			return code;
		if (i)
			*at++ = ',';
		at = write_number(at, address);
	}
	*at++ = ']';
	*size = (size_t)(at - writer->stacks->text);
	return SQLITE_OK;
}

static int touch_stack(struct writer *writer, int64_t row)
{
	struct prepared *touch = writer_bind(writer, &writer->stacks->sql.touch);

	bind_number(touch, "epoch", writer->epoch);
	bind_number(touch, "id", row);
	writer->rewritten += STACK_BYTES;
	return writer_run(writer, touch);
}

/* Finds its row in the file, and sets its epoch to the current one. Not inlined, because the hash of every
 * sample's addresses would lack registers. */
static __attribute__((noinline)) int64_t find_stack(struct writer *writer, const struct sample_record *sample,
                                                    size_t depth)
{
	struct prepared *find, *add;
	int64_t hash, row;
	size_t size;
	int code = write_stack(writer, sample, depth, &size);

	if (code)
		return -code;
	hash = (int64_t)hash_bytes(writer->stacks->text, size).first;
	find = writer_bind(writer, &writer->stacks->sql.find);
	bind_number(find, "hash", hash);
	bind_text(find, "trace", writer->stacks->text, size);
	row = writer_number(writer, find);
	if (row < 0)
		return row;
	if (row) {
		code = touch_stack(writer, row);
		return code ? -code : row;
	}
	add = writer_bind(writer, &writer->stacks->sql.add);
	bind_number(add, "hash", hash);
	bind_number(add, "epoch", writer->epoch);
	bind_text(add, "trace", writer->stacks->text, size);
	writer->bytes += size + 40;
	return writer_insert(writer, add);
}

int64_t intern_stack(struct writer *writer, const struct sample_record *sample)
{
	size_t depth = sample->depth < STACK_FRAMES_MAX ? sample->depth : STACK_FRAMES_MAX;
	struct hash key = hash_words(sample->addresses, depth);
	struct known_stack *known = hash_table_find(&writer->stacks->known, key);
	int64_t row;
	int code;

	if (known && known->row && known->generation == sample->generation) {
		if (known->epoch != writer->epoch) {
			code = touch_stack(writer, known->row);
			if (code)
				return -code;
			known->epoch = writer->epoch;
		}
		return known->row;
	}
	/* It is new, or the code map has changed: the same addresses may now belong to another module. */
	row = find_stack(writer, sample, depth);
	if (row < 0)
		return row;
	if (!known)
		known = hash_table_add(&writer->stacks->known, key);
	if (known) {
		known->row = row;
		known->epoch = writer->epoch;
		known->generation = sample->generation;
	}
	return row;
}
