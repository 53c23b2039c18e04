/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "handler/unwind/stack_copy.h"

#define PAGES STACK_COPIES_MAX
#define NO_PAGE 1 /* no page has this address */

struct memory {
	int used, next;                  /* pages that hold something; the one to replace */
	bool is_copied;                  /* nothing is loaded, so nothing can be unmapped meanwhile */
	uint32_t read;                   /* a bit for each of the pages that was read */
	struct stack_copy copies[PAGES]; /* those that were used have a page, in any order */
	unsigned char pages[PAGES][STACK_COPY_BYTES];
};

/* Most call stacks read the same pages as the one before: one call of the kernel copies them all. */
static void copy_again(struct memory *memory)
{
	int count = 0;

	for (int i = 0; i < memory->used; i++) {
		const struct stack_copy copy = memory->copies[i];

		if (!(memory->read & 1u << i) || copy.held == NO_PAGE || copy.probes)
			continue;
		memory->copies[i] = memory->copies[count];
		memory->copies[count++] = copy;
	}
	memory->used = stack_copy_again(memory->copies, count);
	memory->next = memory->used % PAGES;
	memory->read = 0;
}

static struct memory *spare; /* atomic; NULL: none */

struct memory *memory_open(void)
{
	struct memory *memory = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQUIRE);

	if (memory)
		copy_again(memory);
	else
		memory = calloc(1, sizeof(*memory));
	return memory;
}

void memory_close(struct memory *memory)
{
	if (memory)
		free(__atomic_exchange_n(&spare, memory, __ATOMIC_ACQ_REL));
}

/* What it refers to may be gone, if an interpreter ended. */
static struct memory interrupted;
static pid_t interrupted_by; /* atomic; a process, so that a forked child does not wait for a thread of its
                                parent; 0: none */

struct memory *memory_acquire(void)
{
	pid_t self = getpid(), other = __atomic_load_n(&interrupted_by, __ATOMIC_RELAXED);

	if (other == self || !__atomic_compare_exchange_n(&interrupted_by, &other, self, false,
	                                                  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return NULL;
	interrupted.is_copied = true;
	copy_again(&interrupted);
	return &interrupted;
}

void memory_release(void)
{
	__atomic_store_n(&interrupted_by, 0, __ATOMIC_RELEASE);
}

/* The copy that holds the page, or the oldest one, which will. */
static struct stack_copy *find_copy(struct memory *memory, uintptr_t page)
{
	struct stack_copy *copy;

	for (int i = 0; i < memory->used; i++)
		if (memory->copies[i].held == page) {
			memory->read |= 1u << i;
			return &memory->copies[i];
		}
	copy = &memory->copies[memory->next];
	memory->read |= 1u << memory->next;
	if (memory->used == memory->next) {
		*copy = (struct stack_copy){ .page = copy->page ? copy->page : memory->pages[memory->used],
			                     .held = NO_PAGE,
			                     .probes = memory->used && memory->copies[0].probes };
		/* The first one finds the method, with a call of the kernel. What cannot be read then, cannot
		 * be read later. */
		if (!memory->used++)
			stack_copy_begin(copy, page);
	}
	memory->next = (memory->next + 1) % PAGES;
	return copy;
}

bool memory_read(struct memory *memory, uintptr_t at, void *to, size_t size)
{
	size_t part;

	for (; size; at += part, to = (char *)to + part, size -= part) {
		part = STACK_COPY_BYTES - at % STACK_COPY_BYTES;
		part = part < size ? part : size;
		struct stack_copy *copy = find_copy(memory, at - at % STACK_COPY_BYTES);
		if ((memory->is_copied && copy->probes) || !stack_copy_read(copy, at, to, part))
			return false;
	}
	return true;
}

uintptr_t memory_word(struct memory *memory, uintptr_t at)
{
	uintptr_t word;

	return at && memory_read(memory, at, &word, sizeof(word)) ? word : 0;
}
