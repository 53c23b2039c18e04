/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of this process in memory that another process holds, too, and reads: the ring, and all that
 * its records need to be understood without this process. It is a sealed memfd of one size, mapped for good;
 * store/collector.h stores what comes there.
 *
 * Only where another process requests it (handover/handover.h): elsewhere the ring's memory is
 * private.
 */
#ifndef QUERYPROF_HANDOVER_SHARED_RING_H
#define QUERYPROF_HANDOVER_SHARED_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "collect/state.h"
#include "handover/identity.h"

struct module_log;
struct ring;

/* --- in any process -------------------------------------------------------------------- */

/* A sealed memfd of so many zeros; -1: refused, for instance as RLIMIT_FSIZE is smaller. Where memory is
 * never overcommitted all its pages are there. */
int shared_ring_memory(size_t size);

/* Whether some process's memory has that size. */
bool shared_ring_is_size(size_t size);

/* --- in the process whose ring it is ------------------------------------------------- */

/* How many bytes of memory a process with such a ring shares. */
size_t shared_ring_size(size_t ring_bytes);

/* How many this process shares; 0: none. */
size_t shared_ring_size_here(void);

/* In a forked child whose ring is not shared: counts it as lost, once, in the memory of its parent. False:
 * not such a child. */
bool shared_ring_lose_child(void);

/* Once a process. `fd`: the memory, which stays the caller's to close. NULL: it cannot be mapped; the caller
 * uses private memory. */
struct ring *shared_ring_make(size_t ring_bytes, int fd);

/* Counts what the other process has lost of programs and plans, or removed: where it has grown, they are to
 * be published again. */
uint64_t shared_ring_plans_lost(void);

/* In a forked child, before it has other threads: memory of its own takes the place of the
 * parent's: that of `fd` (*is_shared), or private memory. Its ring, which is empty; where the system refuses
 * the memory, a small one elsewhere, and nothing reads or writes the parent's. */
struct ring *shared_ring_renew(int fd, bool *is_shared);

/* --- in the other process -------------------------------------------------------------- */

/* That process may have fewer rights than this one, and it, or a child of its, may run and write there at any
 * moment. So all that is read here is a copy in private memory, of which each byte is read once, and nothing
 * that the copy was made of is read again. */
struct shared_ring {
	int fd;       /* the caller's; stays open */
	void *memory; /* the copy: all parts below lie in it, zeros until they are copied */
	size_t size;
	struct writer_identity identity; /* of the process */
	struct ring *ring;
	uint64_t counters[SAMPLER_COUNTERS];
	const struct module_log *modules;
	size_t modules_size;
	void *spans;            /* of span/chunk_pool.h */
	void *waits;            /* collect/open_waits.h */
	void *runs;             /* collect/open_runs.h */
	const void *statements; /* wire/statement_memory.h */
	size_t statements_size;
	uint32_t lost_children;
	bool is_copied; /* more than the first two pages */
	/* What they were copied from, only to be written to; and its part that has its records still. */
	void *origin;
	uint64_t tail, head;
};

/* Whoever holds the memory can give pages of it back. A write brings a new page, and if the kernel refuses it
 * the process gets SIGBUS. Once, in the other process: what it writes then is for nobody, and it goes on.
 * False: no memory. */
bool shared_ring_guard(void);

/* Copies the identity, the counters and the ring's positions; and the last two again. False: it is not one of
 * this version, or not any more; errno ENOMEM: there is no memory for a copy. */
bool shared_ring_open(struct shared_ring *shared, int fd);
bool shared_ring_look(struct shared_ring *shared);
void shared_ring_close(struct shared_ring *shared);

/* Copies all the rest, of a process that is gone. False: it cannot be read. */
bool shared_ring_copy(struct shared_ring *shared);

/* Copies the records that are committed, and the modules, of a process that runs. False: the records cannot
 * be read. */
bool shared_ring_copy_committed(struct shared_ring *shared);

/* Copies the counters of statements of a process that runs. False: they cannot be read now. */
bool shared_ring_copy_statements(struct shared_ring *shared);

/* Frees the room of the records that the reader of the copy has released. */
void shared_ring_free(struct shared_ring *shared);

void shared_ring_tell_plans_lost(struct shared_ring *shared, uint64_t lost);

#endif
