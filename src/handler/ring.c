/*
 * The ring: one block of memory and two positions that only grow.
 *
 * A producer moves `head` forward by compare-and-swap and owns what it stepped
 * over. A record is a header word and its payload, both 8-byte aligned and never
 * split: a record that would cross the end of the block is preceded by padding.
 * The header says whether the record is ready, so records become readable in the
 * order of their reservation, whoever commits first. The consumer fills what it
 * frees with zeros before it moves `tail`: a word that nobody committed reads as
 * "not ready" and a producer need not clean up before it begins.
 *
 * Nothing here waits but the consumer's sleep. A producer that is interrupted
 * between reserve and commit only delays the reading of what comes after it.
 *
 * The block is private anonymous memory: a forked child has a copy of its own,
 * with records that others will never commit in it; ring_reset_in_child().
 */
#include "handler/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/sys.h"

#define CACHE_LINE 64
#define WORD sizeof(uint64_t)

/* A header: the payload's size below, the kind above. RESERVED keeps a payload of
 * no bytes apart from memory that nobody has. */
#define HEADER_SIZE_MASK 0xffffffffull
#define HEADER_KIND_SHIFT 32
#define HEADER_RESERVED (1ull << 63)
#define KIND_MASK 0x7fffffffu
#define KIND_PADDING KIND_MASK

/* How the consumer sleeps; the word that its futex waits on. */
enum sleep {
	SLEEP_NOT,     /* awake */
	SLEEP_TIMED,   /* wake it when the ring is half full */
	SLEEP_IDLE,    /* wake it at the first record */
	SLEEP_STALLED, /* the oldest record is being written: it looks again by itself */
};

/* Who writes what decides on the cache lines: producers the first, the consumer
 * the second, nobody the third. */
struct ring {
	_Alignas(CACHE_LINE) atomic_uint_fast64_t head;
	atomic_uint_fast64_t dropped;

	_Alignas(CACHE_LINE) atomic_uint_fast64_t tail;
	_Atomic uint32_t sleep;
	_Atomic uint32_t wake_asked;

	_Alignas(CACHE_LINE) size_t bytes; /* of the block, a power of two */
	size_t mapped;
	_Atomic uint64_t *block;
};

/* --- memory orders, each with its reason ----------------------------------- */

/* Acquire: what is written into freed room must come after the consumer's zeros.
 * It also makes the head read afterwards at least as new as this tail. */
static uint64_t load_tail_for_room(struct ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

/* Release: the zeros come first. */
static void store_tail(struct ring *ring, uint64_t tail)
{
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

/* Relaxed: winning gives the room to one producer; what it writes there is handed
 * over by the header, not by the head. */
static bool claim(struct ring *ring, uint64_t *head, uint64_t next)
{
	return atomic_compare_exchange_weak_explicit(&ring->head, head, next, memory_order_relaxed,
	                                             memory_order_relaxed);
}

/* Sequentially consistent, both this store and the load of `sleep` that follows
 * it: against the consumer, which stores `sleep` and then loads the header. One
 * of the two must see the other, or a record would lie there while the consumer
 * sleeps without a limit. It releases the payload as well. */
static void publish_header(_Atomic uint64_t *header, uint64_t value)
{
	atomic_store_explicit(header, value, memory_order_seq_cst);
}

/* The counterpart; it acquires the payload. */
static uint64_t load_header(_Atomic uint64_t *header)
{
	return atomic_load_explicit(header, memory_order_seq_cst);
}

/* --- places ------------------------------------------------------------------ */

static _Atomic uint64_t *header_at(const struct ring *ring, uint64_t position)
{
	return ring->block + (position & (ring->bytes - 1)) / WORD;
}

/* Bytes that a record takes with its header. */
static size_t record_bytes(size_t payload)
{
	return WORD + ((payload + WORD - 1) & ~(WORD - 1));
}

static bool is_committed(uint64_t header)
{
	return ((header >> HEADER_KIND_SHIFT) & KIND_MASK) != 0;
}

static uint64_t committed_header(unsigned kind, size_t size)
{
	return HEADER_RESERVED | (uint64_t)(kind & KIND_MASK) << HEADER_KIND_SHIFT | size;
}

/* --- life ---------------------------------------------------------------------- */

struct ring *ring_create(size_t bytes)
{
	size_t size = RING_MIN_BYTES;
	while (size < bytes && size < RING_MAX_BYTES)
		size *= 2;

	/* The ring's own fields take a page in front of the block. */
	size_t front = 4096;
	void *memory = mmap(NULL, front + size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;

	struct ring *ring = memory;
	ring->bytes = size;
	ring->mapped = front + size;
	ring->block = (_Atomic uint64_t *)((char *)memory + front);
	return ring;
}

void ring_destroy(struct ring *ring)
{
	if (ring != NULL)
		munmap(ring, ring->mapped);
}

void ring_reset_in_child(struct ring *ring)
{
	/* Fresh pages of zeros; cheaper than writing them, and the copies of the
	 * parent's pages go. */
	if (madvise((void *)ring->block, ring->bytes, MADV_DONTNEED) != 0) {
		for (size_t i = 0; i < ring->bytes / WORD; i++)
			atomic_store_explicit(&ring->block[i], 0, memory_order_relaxed);
	}
	atomic_store(&ring->dropped, 0);
	atomic_store(&ring->sleep, SLEEP_NOT);
	atomic_store(&ring->wake_asked, 0);
	store_tail(ring, atomic_load(&ring->head));
}

/* Half the ring less a header: then padding and record always fit an empty ring,
 * wherever its head stands. */
size_t ring_max_payload(const struct ring *ring)
{
	return ring->bytes / 2 - WORD;
}

size_t ring_bytes(const struct ring *ring)
{
	return ring->bytes;
}

/* --- producers ------------------------------------------------------------------ */

static void *refuse(struct ring *ring)
{
	atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
	return NULL;
}

void *ring_reserve(struct ring *ring, size_t size)
{
	if (size > ring_max_payload(ring))
		return refuse(ring);

	size_t need = record_bytes(size);
	uint64_t head, next;
	size_t padding;
	do {
		/* The tail first: it can then never be ahead of the head. */
		uint64_t tail = load_tail_for_room(ring);
		head = atomic_load_explicit(&ring->head, memory_order_relaxed);
		size_t to_end = ring->bytes - (head & (ring->bytes - 1));
		padding = need > to_end ? to_end : 0;
		next = head + padding + need;
		if (next - tail > ring->bytes)
			return refuse(ring);
	} while (!claim(ring, &head, next));

	if (padding != 0) {
		publish_header(header_at(ring, head), committed_header(KIND_PADDING, padding - WORD));
		head += padding;
	}
	_Atomic uint64_t *header = header_at(ring, head);
	/* Relaxed: only this thread, in ring_commit(), makes use of it. */
	atomic_store_explicit(header, HEADER_RESERVED | size, memory_order_relaxed);
	return (void *)(header + 1);
}

/* Wakes the consumer from sleep `was`. Of several that see it asleep one wins:
 * one system call a sleep. */
static void wake_from(struct ring *ring, uint32_t was)
{
	if (atomic_compare_exchange_strong(&ring->sleep, &was, SLEEP_NOT))
		sys_futex_wake((uint32_t *)&ring->sleep);
}

static uint64_t used_bytes(struct ring *ring)
{
	/* The tail first, as in ring_reserve(). */
	uint64_t tail = load_tail_for_room(ring);
	return atomic_load_explicit(&ring->head, memory_order_relaxed) - tail;
}

static bool is_half_full(struct ring *ring)
{
	return used_bytes(ring) >= ring->bytes / 2;
}

void ring_commit(struct ring *ring, void *payload, unsigned kind)
{
	_Atomic uint64_t *header = (_Atomic uint64_t *)payload - 1;
	size_t size = atomic_load_explicit(header, memory_order_relaxed) & HEADER_SIZE_MASK;

	publish_header(header, committed_header(kind, size));

	/* Sequentially consistent, see publish_header(). A wake-up that the test for
	 * half full misses comes with the next record, or with the time-out. */
	uint32_t sleep = atomic_load(&ring->sleep);
	if (sleep == SLEEP_IDLE || (sleep == SLEEP_TIMED && is_half_full(ring)))
		wake_from(ring, sleep);
}

void ring_wake(struct ring *ring)
{
	/* Asked first, then the sleep looked at; the consumer does it the other way
	 * round. Both sequentially consistent, so that one sees the other. */
	atomic_store(&ring->wake_asked, 1);
	if (atomic_exchange(&ring->sleep, SLEEP_NOT) != SLEEP_NOT)
		sys_futex_wake((uint32_t *)&ring->sleep);
}

/* --- the consumer ----------------------------------------------------------------- */

/* Frees the record at the tail. The words are zeroed one by one as atomics: any of
 * them may be a header later on, for which zero has a meaning. */
static void free_oldest(struct ring *ring, uint64_t header)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	size_t bytes = record_bytes(header & HEADER_SIZE_MASK);
	_Atomic uint64_t *word = header_at(ring, tail);

	for (size_t i = 0; i < bytes / WORD; i++)
		atomic_store_explicit(&word[i], 0, memory_order_relaxed);
	store_tail(ring, tail + bytes);
}

void *ring_peek(struct ring *ring, unsigned *kind, size_t *size)
{
	for (;;) {
		/* Relaxed: the consumer wrote it. */
		uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
		_Atomic uint64_t *word = header_at(ring, tail);
		uint64_t header = load_header(word);
		if (!is_committed(header))
			return NULL;
		unsigned found = (unsigned)(header >> HEADER_KIND_SHIFT) & KIND_MASK;
		if (found != KIND_PADDING) {
			*kind = found;
			*size = header & HEADER_SIZE_MASK;
			return (void *)(word + 1);
		}
		free_oldest(ring, header);
	}
}

void ring_consume(struct ring *ring)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t header = load_header(header_at(ring, tail));

	if (is_committed(header))
		free_oldest(ring, header);
}

/* What the consumer's sleep must end for, looked at after `sleep` was stored. */
static bool is_wanted(struct ring *ring, uint32_t sleep)
{
	if (atomic_exchange(&ring->wake_asked, 0) != 0)
		return true;
	if (sleep != SLEEP_IDLE && !is_half_full(ring))
		return false;
	unsigned kind;
	size_t size;
	return ring_peek(ring, &kind, &size) != NULL;
}

/* First and longest pause between two looks at a record that is being written. Its
 * writer is a handler, so it takes microseconds; longer ones are preempted or, with
 * a debugger, stopped. */
#define STALL_FIRST_NS 1000000ull
#define STALL_LAST_NS 32000000ull

void ring_wait(struct ring *ring, int64_t timeout_ns)
{
	bool limited = timeout_ns >= 0;
	uint64_t deadline = limited ? clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ns : UINT64_MAX;
	uint64_t pause = STALL_FIRST_NS;

	for (;;) {
		uint32_t sleep = limited ? SLEEP_TIMED : SLEEP_IDLE;
		atomic_store(&ring->sleep, sleep);
		if (is_wanted(ring, sleep))
			break;

		uint64_t now = limited ? clock_ns(CLOCK_MONOTONIC) : 0;
		if (limited && now >= deadline)
			break;
		uint64_t until = deadline;
		/* Reserved, wanted, not committed: every commit behind it would wake us
		 * for nothing. */
		if (limited ? is_half_full(ring) : used_bytes(ring) != 0) {
			now = clock_ns(CLOCK_MONOTONIC);
			if (now + pause < until)
				until = now + pause;
			if (pause < STALL_LAST_NS)
				pause *= 2;
			/* Not when somebody has woken us meanwhile. */
			uint32_t expected = sleep;
			sleep = SLEEP_STALLED;
			if (!atomic_compare_exchange_strong(&ring->sleep, &expected, sleep))
				continue;
		}
		struct timespec at = timespec_of_ns(until);
		sys_futex_wait((uint32_t *)&ring->sleep, sleep, until == UINT64_MAX ? NULL : &at);
	}
	atomic_store(&ring->sleep, SLEEP_NOT);
}

/* --- figures ----------------------------------------------------------------------- */

/* Acquire on both: the caller compares them with what it knows of other threads. */
uint64_t ring_head(const struct ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}

uint64_t ring_tail(const struct ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

uint64_t ring_dropped(const struct ring *ring)
{
	return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}
