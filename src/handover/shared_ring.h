/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of this process in memory that another process also holds and reads: the ring, and
 * everything needed to understand its records without this process. It is a sealed memfd of one size,
 * mapped permanently; store/collector.h stores the records.
 *
 * Only if another process requests it (handover/handover.h); otherwise the ring's memory is private.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "collect/state.h"
#include "handover/identity.h"

struct module_log;
struct ring;

/* --- in any process -------------------------------------------------------------------- */

/* A sealed memfd with `size` zeros; -1: refused, for instance because RLIMIT_FSIZE is smaller. If
 * memory is never overcommitted, all its pages are allocated. */
int shared_ring_memory(size_t size);

/* --- in the process whose ring it is ------------------------------------------------- */

/* How many bytes of memory a process with such a ring shares. */
size_t shared_ring_size(size_t ring_bytes);

/* How many this process shares; 0: none. */
size_t shared_ring_size_here(void);

/* In a forked child whose ring is not shared: counts it as lost, once, in the memory of its parent. False:
 * not such a child. */
bool shared_ring_lose_child(void);

/* Once per process. `fd`: the memory, which the caller must close. NULL: it cannot be mapped; the
 * caller uses private memory. */
struct ring *shared_ring_make(size_t ring_bytes, int fd);

/* The number of programs and plans that the other process has lost or removed. If it grows, they
 * must be published again. */
uint64_t shared_ring_plans_lost(void);

/* In a forked child, before it has other threads: replaces the parent's memory by its own: that of
 * `fd` (*is_shared), or private memory. Returns its empty ring. If the system refuses the memory,
 * it is a small ring elsewhere, and nothing reads or writes the parent's. */
struct ring *shared_ring_renew(int fd, bool *is_shared);

/* --- in the other process -------------------------------------------------------------- */

/* That process may have fewer rights than this one, and it, or a child of it, may write there at
 * any moment. So everything that is read here is a copy in private memory. Each byte is read once,
 * and the source of the copy is never read again. */
struct shared_ring {
	int fd;       /* the caller's; stays open */
	void *memory; /* the copy: contains all parts below, zeros until they are copied */
	size_t size;
	struct writer_identity identity; /* of the process */
	struct ring *ring;
	uint64_t counters[SAMPLER_COUNTERS];
	const struct module_log *modules;
	size_t modules_size;
	void *spans;            /* of span/chunk_pool.h */
	void *waits;            /* collect/open_waits.h */
	void *runs;             /* collect/open_runs.h */
	void *transactions;     /* collect/transaction_states.h */
	const void *statements; /* wire/statement_memory.h */
	size_t statements_size;
	uint32_t lost_children;
	bool is_copied; /* more than the first two pages */
	/* The source of the copies, used only to write; and its part that still has its records. */
	void *origin;
	uint64_t tail, head;
};

/* Every process that holds the memory can release pages of it. A write then allocates a new page,
 * and if the kernel refuses it the process gets SIGBUS. Call this once, in the other process: its
 * writes then have no effect, and it continues. False: out of memory. */
bool shared_ring_guard(void);

/* Copies the identity, the counters and the ring's positions; and the last two again. False: it is
 * not, or no longer, one of this version; errno ENOMEM: no memory for a copy. */
bool shared_ring_open(struct shared_ring *shared, int fd);
bool shared_ring_refresh(struct shared_ring *shared);
void shared_ring_close(struct shared_ring *shared);

/* Copies everything else of a process that has ended. False: it cannot be read. */
bool shared_ring_copy(struct shared_ring *shared);

/* Copies the committed records, and the modules, of a running process. False: the records cannot be read. */
bool shared_ring_copy_committed(struct shared_ring *shared);

/* Copies the counters of statements of a running process. False: they cannot be read now. */
bool shared_ring_copy_statements(struct shared_ring *shared);

/* Instead of shared_ring_open(), for a process that only looks: `fd` may be open for reading only. Nothing is
 * written there, and no record is read. */
bool shared_ring_open_to_inspect(struct shared_ring *shared, int fd);

/* Copies what is open now of a running process: waits, runs and transactions. What changed while it was
 * copied is left out of the copy; `changed` is the number of runs and transactions among that. False: it
 * cannot be read, or is not one of this version. */
bool shared_ring_copy_open(struct shared_ring *shared, uint32_t *changed);

/* Frees the room of the records that the reader of the copy has released. */
void shared_ring_free(struct shared_ring *shared);

void shared_ring_tell_plans_lost(struct shared_ring *shared, uint64_t lost);
