/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two-level segregated fit (Masmano et al., "TLSF", ECRTS 2004): lists of free blocks by size,
 * sixteen for each power of two, and bits that show which are not empty. Taking and returning a block
 * has a bounded number of steps. A free block is merged with its neighbours immediately, so an empty
 * region from mmap() can return to the kernel. A large block is a mapping of its own.
 *
 * There are a few arenas, each with a lock. A thread that finds its arena locked takes the next, as
 * in libc.
 *
 * A lock is held for some instructions. In a child of a bare clone(), which runs no handlers of
 * fork(), one may be held permanently by a thread that does not exist there. So no wait is longer
 * than a second: then the arena is abandoned until its lock is released.
 */
#include "system/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bounded_wait.h"
#include "base/futex.h"
#include "base/lock.h"
#include "system/call.h"

#define ALIGN 16u
#define PAGE 4096u /* at least; a mapping's size is rounded up by the kernel */

/* --- blocks ---------------------------------------------------------------------------------------- */

/* The word in front of a block: its size, which is a multiple of ALIGN, and these. The arena's number is in
 * the upper bits. */
#define IS_FREE 1ul
#define BEFORE_IS_FREE 2ul
#define IS_LARGE 4ul
#define ARENA_SHIFT 56
#define SIZE_MASK (((1ul << ARENA_SHIFT) - 1) & ~15ul)

/* Memory begins after `word`. The word before it is the last one of the previous block, and valid
 * while that is free. */
struct block {
	struct block *before;
	size_t word;
	struct block *next_free, *previous_free; /* while it is free */
};

#define HEADER (2 * sizeof(size_t)) /* from a block's beginning to its memory */
#define OVERHEAD sizeof(size_t)     /* what each block costs */

_Static_assert(sizeof(struct block) == 32 && HEADER == ALIGN, "memory is aligned as a block is");

static size_t size_of(const struct block *block)
{
	return block->word & SIZE_MASK;
}

static struct block *block_of(void *memory)
{
	return (struct block *)((char *)memory - HEADER);
}

static void *memory_of(struct block *block)
{
	return (char *)block + HEADER;
}

/* A block's size is from its word to the next one's. */
static struct block *behind(struct block *block)
{
	return (struct block *)((char *)block + size_of(block));
}

/* A size includes the word; a free block has room for its two links and the word `before` of the next. */
#define BLOCK_MIN 32u

static size_t block_size_for(size_t size)
{
	size_t whole = (size + OVERHEAD + ALIGN - 1) & ~(size_t)(ALIGN - 1);

	return whole < BLOCK_MIN ? BLOCK_MIN : whole;
}

/* --- lists ----------------------------------------------------------------------------------------- */

#define LISTS_LOG 4
#define LISTS (1u << LISTS_LOG) /* of a power of two */
#define LINEAR_LOG 8            /* below it a list has one size */
#define POWERS 16
#define LARGE (256u << 10)      /* from here on a block is a mapping of its own */
#define REGION_MIN (128u << 10) /* requested from the kernel */
#define REGION_MAX (2048u << 10)

_Static_assert(REGION_MAX < 1u << (LINEAR_LOG + POWERS - 1), "a region is in a list");

struct arena {
	uint32_t lock; /* 0: free, 1: taken, 2: and threads wait */
	uint32_t is_abandoned;
	uint32_t powers;
	uint32_t lists[POWERS];
	struct block *free[POWERS][LISTS];
	size_t mapped;        /* in regions */
	struct region *spare; /* an empty one, to be used again; it is in the lists */
};

struct region {
	size_t size;
	size_t unused; /* the first block begins at a multiple of ALIGN */
};

#define ARENAS 4u
static struct arena arenas[ARENAS];
static size_t mapped_large;
static __thread unsigned char chosen;
static __thread bool has_all; /* it forks and has the locks of all */

static void slot_of(size_t size, unsigned *power, unsigned *list)
{
	unsigned log;

	if (size < 1u << LINEAR_LOG) {
		*power = 0;
		*list = (unsigned)size / (1u << (LINEAR_LOG - LISTS_LOG));
		return;
	}
	log = 63u - (unsigned)__builtin_clzl(size);
	*power = log - LINEAR_LOG + 1;
	*list = (unsigned)(size >> (log - LISTS_LOG)) & (LISTS - 1);
}

static void list_add(struct arena *arena, struct block *block)
{
	unsigned power, list;

	slot_of(size_of(block), &power, &list);
	block->previous_free = NULL;
	block->next_free = arena->free[power][list];
	if (block->next_free)
		block->next_free->previous_free = block;
	arena->free[power][list] = block;
	arena->powers |= 1u << power;
	arena->lists[power] |= 1u << list;
}

static void list_remove(struct arena *arena, struct block *block)
{
	unsigned power, list;

	if (block->next_free)
		block->next_free->previous_free = block->previous_free;
	if (block->previous_free) {
		block->previous_free->next_free = block->next_free;
		return;
	}
	slot_of(size_of(block), &power, &list);
	arena->free[power][list] = block->next_free;
	if (!block->next_free) {
		arena->lists[power] &= ~(1u << list);
		if (!arena->lists[power])
			arena->powers &= ~(1u << power);
	}
}

/* A free block that is large enough: of the next list all are. */
static struct block *list_find(const struct arena *arena, size_t size)
{
	unsigned power, list;
	uint32_t lists;

	if (size >= 1u << LINEAR_LOG)
		size += (1ul << (63 - __builtin_clzl(size) - LISTS_LOG)) - 1;
	slot_of(size, &power, &list);
	if (power >= POWERS)
		return NULL;
	lists = arena->lists[power] & ~0u << list;
	if (!lists) {
		uint32_t powers = arena->powers & (~0u << power << 1);

		if (!powers)
			return NULL;
		power = (unsigned)__builtin_ctz(powers);
		lists = arena->lists[power];
	}
	return arena->free[power][__builtin_ctz(lists)];
}

/* Marks it as free, or not, in its own word and in the next block's. */
static void set_free(struct block *block, bool is_free)
{
	struct block *next = behind(block);

	if (is_free) {
		block->word |= IS_FREE;
		next->word |= BEFORE_IS_FREE;
		next->before = block;
	} else {
		block->word &= ~IS_FREE;
		next->word &= ~BEFORE_IS_FREE;
	}
}

static void set_size(struct block *block, size_t size)
{
	block->word = (block->word & ~SIZE_MASK) | size;
}

/* --- the kernel ------------------------------------------------------------------------------------ */

static void *map(size_t size)
{
	long at =
		CALL_KERNEL(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return (unsigned long)at > -4096ul ? NULL : (void *)at;
}

static size_t round_to_pages(size_t size)
{
	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* A region ends with the word of a block of size 0, which contains the beginning of the region. */
#define REGION_END (HEADER + sizeof(struct region *))

static struct block *first_block(struct region *region)
{
	return (struct block *)((char *)region + sizeof(*region));
}

static bool add_region(struct arena *arena, size_t size)
{
	/* list_find() looks where all blocks are large enough, up to a sixteenth more. */
	const size_t needed =
		round_to_pages(size + size / 8 + sizeof(struct region) + REGION_END + 2 * ALIGN);
	size_t whole = round_to_pages(arena->mapped / 2);
	struct region *region;
	struct block *block, *end;
	size_t number = (size_t)(arena - arenas);

	whole = whole < REGION_MIN ? REGION_MIN : whole > REGION_MAX ? REGION_MAX : whole;
	region = whole > needed ? map(whole) : NULL;
	if (!region)
		region = map(whole = needed);
	if (!region)
		return false;
	region->size = whole;
	arena->mapped += whole;
	block = first_block(region);
	block->word = number << ARENA_SHIFT;
	set_size(block, (whole - sizeof(*region) - REGION_END) & ~(size_t)(ALIGN - 1));
	end = behind(block);
	end->word = number << ARENA_SHIFT;
	*(struct region **)memory_of(end) = region;
	set_free(block, true);
	list_add(arena, block);
	return true;
}

/* With the block in no list. True: it was the whole region, which was unmapped. */
static bool drop_region(struct arena *arena, struct block *block)
{
	struct block *end = behind(block);
	struct region *region;

	if (size_of(end) != 0)
		return false;
	region = *(struct region **)memory_of(end);
	if (block != first_block(region))
		return false;
	if (!arena->spare) {
		arena->spare = region;
		return false;
	}
	arena->mapped -= region->size;
	CALL_KERNEL(SYS_munmap, region, region->size);
	return true;
}

/* --- locks ----------------------------------------------------------------------------------------- */

BOUNDED_WAIT_DEFINE(for_arena, "any thread: memory", NS_PER_S,
                    "the thread that has the arena, after some instructions");

static bool arena_try(struct arena *arena)
{
	uint32_t none = 0;

	/* Acquire: what the thread before has written. */
	return __atomic_compare_exchange_n(&arena->lock, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool arena_wait(struct arena *arena)
{
	struct bounded_wait wait = bounded_wait_begin(&for_arena);

	while (__atomic_exchange_n(&arena->lock, 2, __ATOMIC_ACQUIRE) != 0) {
		if (__atomic_load_n(&arena->is_abandoned, __ATOMIC_RELAXED))
			return false;
		if (!bounded_wait_futex(&wait, &arena->lock, 2, BOUND_NONE))
			__atomic_store_n(&arena->is_abandoned, 1, __ATOMIC_RELAXED);
	}
	return true;
}

static bool fork_has[ARENAS]; /* under their locks */

static bool arena_acquire(struct arena *arena)
{
	return has_all ? fork_has[arena - arenas] : arena_try(arena) || arena_wait(arena);
}

static void arena_give(struct arena *arena)
{
	if (has_all)
		return;
	if (__builtin_expect(__atomic_exchange_n(&arena->lock, 0, __ATOMIC_RELEASE) == 2, 0)) {
		__atomic_store_n(&arena->is_abandoned, 0, __ATOMIC_RELAXED);
		futex_wake(&arena->lock, 1);
	}
}

/* NULL: all are left. */
static struct arena *arena_any(void)
{
	if (has_all) {
		for (unsigned i = 0; i < ARENAS; i++)
			if (fork_has[i])
				return &arenas[i];
		return NULL;
	}
	for (unsigned i = 0; i < ARENAS; i++) {
		unsigned number = (chosen + i) % ARENAS;

		if (arena_try(&arenas[number])) {
			chosen = (unsigned char)number;
			return &arenas[number];
		}
	}
	for (unsigned i = 0; i < ARENAS; i++)
		if (arena_wait(&arenas[(chosen + i) % ARENAS]))
			return &arenas[(chosen + i) % ARENAS];
	return NULL;
}

static void before_fork(void)
{
	for (unsigned i = 0; i < ARENAS; i++)
		fork_has[i] = arena_acquire(&arenas[i]);
	has_all = true;
}

static void after_fork_in_parent(void)
{
	has_all = false;
	for (unsigned i = 0; i < ARENAS; i++)
		if (fork_has[i])
			arena_give(&arenas[i]);
}

/* An arena whose thread is not there is left for ever. */
static void after_fork_in_child(void)
{
	has_all = false;
	for (unsigned i = 0; i < ARENAS; i++)
		if (fork_has[i])
			__atomic_store_n(&arenas[i].lock, 0, __ATOMIC_RELEASE);
}

static const struct lock_group group = { before_fork, after_fork_in_parent, after_fork_in_child };
LOCK_DEFINE_GROUP(memory, LOCK_MEMORY, &group);

/* --- taking and giving back ------------------------------------------------------------------------ */

/* The rest after the first `size` bytes is free again, if it is large enough for a block. */
static void split(struct arena *arena, struct block *block, size_t size)
{
	const size_t left = size_of(block) - size;
	struct block *rest, *next;

	if (left < BLOCK_MIN)
		return;
	set_size(block, size);
	rest = behind(block);
	rest->word = block->word & ~(SIZE_MASK | IS_FREE | BEFORE_IS_FREE);
	set_size(rest, left);
	next = behind(rest);
	if (next->word & IS_FREE) {
		list_remove(arena, next);
		set_size(rest, left + size_of(next));
	}
	set_free(rest, true);
	list_add(arena, rest);
}

static void *acquire(size_t size)
{
	struct arena *arena = arena_any();
	struct block *block;

	if (!arena)
		return NULL;
	block = list_find(arena, size);
	if (!block && add_region(arena, size))
		block = list_find(arena, size);
	if (block) {
		list_remove(arena, block);
		set_free(block, false);
		if (arena->spare && block == first_block(arena->spare))
			arena->spare = NULL;
		split(arena, block, size);
	}
	arena_give(arena);
	return block ? memory_of(block) : NULL;
}

static void give(struct block *block)
{
	struct arena *arena = &arenas[block->word >> ARENA_SHIFT];
	struct block *next;

	if (!arena_acquire(arena))
		return;
	if (block->word & BEFORE_IS_FREE) {
		struct block *before = block->before;

		list_remove(arena, before);
		set_size(before, size_of(before) + size_of(block));
		block = before;
	}
	next = behind(block);
	if (next->word & IS_FREE) {
		list_remove(arena, next);
		set_size(block, size_of(block) + size_of(next));
	}
	if (!drop_region(arena, block)) {
		set_free(block, true);
		list_add(arena, block);
	}
	arena_give(arena);
}

/* The size of a large block is that of its mapping. */
static void *acquire_large(size_t size)
{
	const size_t whole = round_to_pages(size + HEADER);
	struct block *block = map(whole);

	if (!block)
		return NULL;
	block->word = whole | IS_LARGE;
	__atomic_fetch_add(&mapped_large, whole, __ATOMIC_RELAXED);
	return memory_of(block);
}

static void *resize_large(struct block *block, size_t size)
{
	const size_t before = size_of(block), whole = round_to_pages(size + HEADER);
	long at;

	if (whole == before)
		return memory_of(block);
	at = CALL_KERNEL(SYS_mremap, block, before, whole, MREMAP_MAYMOVE);
	if ((unsigned long)at > -4096ul)
		return NULL;
	block = (struct block *)at;
	block->word = whole | IS_LARGE;
	__atomic_fetch_add(&mapped_large, whole - before, __ATOMIC_RELAXED);
	return memory_of(block);
}

/* False: it is at an address at which it cannot have that size. */
static bool resize_in_slot(struct block *block, size_t size)
{
	struct arena *arena = &arenas[block->word >> ARENA_SHIFT];
	struct block *next;
	bool fits = true;

	if (!arena_acquire(arena))
		return false;
	if (size > size_of(block)) {
		next = behind(block);
		fits = next->word & IS_FREE && size_of(block) + size_of(next) >= size;
		if (fits) {
			list_remove(arena, next);
			set_size(block, size_of(block) + size_of(next));
			set_free(block, false);
		}
	}
	if (fits)
		split(arena, block, size);
	arena_give(arena);
	return fits;
}

size_t memory_mapped(void)
{
	size_t sum = __atomic_load_n(&mapped_large, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < ARENAS; i++)
		sum += __atomic_load_n(&arenas[i].mapped, __ATOMIC_RELAXED);
	return sum;
}

/* --- libc's functions ------------------------------------------------------------------------------ */

static void *refuse(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	void *memory;

	if (size > PTRDIFF_MAX - PAGE)
		return refuse();
	memory = size < LARGE ? acquire(block_size_for(size)) : acquire_large(size);
	return memory ? memory : refuse();
}

void free(void *memory)
{
	struct block *block;

	if (!memory)
		return;
	block = block_of(memory);
	if (block->word & IS_LARGE) {
		__atomic_fetch_sub(&mapped_large, size_of(block), __ATOMIC_RELAXED);
		CALL_KERNEL(SYS_munmap, block, size_of(block));
	} else
		give(block);
}

void *calloc(size_t count, size_t size)
{
	size_t whole;
	void *memory;

	if (__builtin_mul_overflow(count, size, &whole))
		return refuse();
	memory = malloc(whole);
	return memory && whole < LARGE ? memset(memory, 0, whole) : memory;
}

void *realloc(void *memory, size_t size)
{
	struct block *block;
	size_t had;
	void *copy;

	if (!memory)
		return malloc(size);
	block = block_of(memory);
	if (size > PTRDIFF_MAX - PAGE)
		return refuse();
	if (block->word & IS_LARGE && size >= LARGE) {
		copy = resize_large(block, size);
		return copy ? copy : refuse();
	}
	if (!(block->word & IS_LARGE) && size < LARGE && resize_in_slot(block, block_size_for(size)))
		return memory;
	copy = malloc(size);
	if (!copy)
		return NULL;
	had = block->word & IS_LARGE ? size_of(block) - HEADER : size_of(block) - OVERHEAD;
	memcpy(copy, memory, had < size ? had : size);
	free(memory);
	return copy;
}

void *reallocarray(void *memory, size_t count, size_t size)
{
	size_t whole;

	return __builtin_mul_overflow(count, size, &whole) ? refuse() : realloc(memory, whole);
}
