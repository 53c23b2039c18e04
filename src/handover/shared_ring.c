/* SPDX-License-Identifier: Apache-2.0 */
#include "handover/shared_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/signal_hold.h"
#include "collect/open_runs.h"
#include "collect/open_waits.h"
#include "collect/ring_reader.h"
#include "collect/ring_remains.h"
#include "collect/transaction_states.h"
#include "handler/ring.h"
#include "modules/module_log.h"
#include "modules/modules.h"
#include "query/statement_stats.h"
#include "queryprof.h"
#include "span/chunk_pool.h"
#include "wire/statement_memory.h"
#include "wire/version.h"

#define PAGE_BYTES 4096

/* The ring of a child that the system refuses memory. */
#define SPARE_BYTES (64u << 10)

/* Room for some ten thousand modules. Untouched pages cost nothing. */
#define LOG_BYTES (4u << 20)

/* Older headers do not know it. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

/* With these neither process can take a page away from under the other. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The memory begins with this, the ring follows at the next page, then the log, then waits, then runs,
 * then transactions, then spans, then the counters of statements. */
struct front {
	char version[16];    /* wire_version, of the build that made it */
	uint64_t ring_bytes; /* with the ring's own fields */
	struct writer_identity identity;
	uint64_t counters[SAMPLER_COUNTERS]; /* atomic */
	uint64_t plans_lost;                 /* atomic; written by the other process */
	uint32_t lost_children;              /* atomic */
};
_Static_assert(sizeof(struct front) <= PAGE_BYTES, "the front takes one page");
_Static_assert(sizeof(wire_version) == sizeof((struct front *)0)->version, "room for it");

static struct {
	char *memory;
	size_t size;
	size_t ring_bytes; /* as ring_create() takes it */
	size_t statements_bytes;
} here;

static size_t log_offset(size_t ring_bytes)
{
	return PAGE_BYTES + ring_bytes;
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static size_t waits_offset(size_t ring_bytes)
{
	return log_offset(ring_bytes) + LOG_BYTES;
}

static size_t runs_offset(size_t ring_bytes)
{
	return waits_offset(ring_bytes) + whole_pages(open_waits_bytes());
}

static size_t transactions_offset(size_t ring_bytes)
{
	return runs_offset(ring_bytes) + whole_pages(shared_entries_bytes(&open_runs));
}

static size_t spans_offset(size_t ring_bytes)
{
	return transactions_offset(ring_bytes) + whole_pages(shared_entries_bytes(&transaction_states));
}

static size_t statements_offset(size_t ring_bytes)
{
	return spans_offset(ring_bytes) + whole_pages(chunk_pool_bytes());
}

/* --- in the process whose ring it is ------------------------------------------------- */

/* Memory that is promised and then not there is a SIGBUS where it is shared. In mode 2 the kernel counts a
 * page when it is needed, and may refuse it then. */
static bool is_memory_strict(void)
{
	char mode = '2';
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &mode, 1) != 1)
			mode = '2';
		close(fd);
	}
	return mode == '2';
}

int shared_ring_memory(size_t size)
{
	struct signal_hold hold;
	bool is_sized;
	int fd;

	fd = memfd_create("queryprof", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0) /* older kernels */
		fd = memfd_create("queryprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	hold = signal_hold(SIGXFSZ);
	is_sized = !ftruncate(fd, (off_t)size) &&
	           (!is_memory_strict() || !syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)size));
	signal_release(&hold, !is_sized && errno == EFBIG);
	if (!is_sized || fcntl(fd, F_ADD_SEALS, SEALS)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

uint64_t shared_ring_plans_lost(void)
{
	return here.memory ? __atomic_load_n(&((struct front *)here.memory)->plans_lost, __ATOMIC_RELAXED)
	                   : 0;
}

/* In a child without such memory: the front of its nearest ancestor that has some. */
static struct front *of_parent;
static bool is_noted; /* there, of this process */

bool shared_ring_lose_child(void)
{
	if (of_parent && !is_noted)
		__atomic_fetch_add(&of_parent->lost_children, 1, __ATOMIC_RELAXED);
	is_noted = true;
	return of_parent != NULL;
}

static char *log_here(void)
{
	return here.memory + log_offset(ring_memory_bytes(here.ring_bytes));
}

static struct ring *fill(uint64_t position)
{
	struct front *front = (struct front *)here.memory;

	memcpy(front->version, wire_version, sizeof(wire_version));
	front->ring_bytes = ring_memory_bytes(here.ring_bytes);
	front->identity = *writer_identity_here();
	state_set_counters(front->counters);
	module_log_make(log_here(), LOG_BYTES);
	open_waits_attach(here.memory + waits_offset(front->ring_bytes));
	shared_entries_attach(&open_runs, here.memory + runs_offset(front->ring_bytes));
	shared_entries_attach(&transaction_states, here.memory + transactions_offset(front->ring_bytes));
	statement_memory_attach(here.memory + statements_offset(front->ring_bytes), here.statements_bytes);
	return ring_init(here.memory + PAGE_BYTES, here.ring_bytes, position);
}

size_t shared_ring_size(size_t ring_bytes)
{
	return statements_offset(ring_memory_bytes(ring_bytes)) +
	       statement_memory_bytes(statement_stats_max());
}

size_t shared_ring_size_here(void)
{
	return here.memory ? here.size : 0;
}

struct ring *shared_ring_make(size_t ring_bytes, int fd)
{
	size_t statements = statements_offset(ring_memory_bytes(ring_bytes));
	struct stat status;
	struct ring *ring;
	void *memory;

	if (fstat(fd, &status) || (size_t)status.st_size < statements)
		return NULL;
	memory =
		mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (memory == MAP_FAILED)
		return NULL;
	here.memory = memory;
	here.size = (size_t)status.st_size;
	here.ring_bytes = ring_bytes;
	here.statements_bytes = here.size - statements;
	ring = fill(0);
	modules_log_to((struct module_log *)log_here());
	chunk_pool_use(here.memory + spans_offset(ring_memory_bytes(ring_bytes)));
	return ring;
}

/* The modules are those of the parent, unless it already has others. */
static void copy_log(char *memory)
{
	const struct module_log *log = (const struct module_log *)log_here();

	if (module_log_generation(log) == modules_generation())
		memcpy(memory + (log_here() - here.memory), log, module_log_size(log));
}

/* The parent's memory is replaced in one step. */
static bool map_memory(int fd)
{
	void *memory = mmap(NULL, here.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (memory == MAP_FAILED)
		return false;
	copy_log(memory);
	if (mremap(memory, here.size, here.size, MREMAP_MAYMOVE | MREMAP_FIXED, here.memory) != MAP_FAILED)
		return true;
	munmap(memory, here.size);
	return false;
}

/* Of shared memory, mremap() from no bytes maps the same once more. */
static void keep_front(void)
{
	void *front = mremap(here.memory, 0, PAGE_BYTES, MREMAP_MAYMOVE);

	of_parent = front == MAP_FAILED ? NULL : front;
}

static bool replace_memory(void)
{
	return mmap(here.memory, here.size, PROT_READ | PROT_WRITE,
	            MAP_FIXED | MAP_NORESERVE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static struct ring *spare_ring(uint64_t position)
{
	static _Alignas(PAGE_BYTES) char memory[PAGE_BYTES + SPARE_BYTES];

	memset(memory, 0, sizeof(memory));
	return ring_init(memory, SPARE_BYTES, position);
}

/* Memory that is still mapped here belongs to the parent. */
static struct ring *detach_memory(uint64_t position)
{
	here.memory = NULL;
	state_set_counters(NULL);
	modules_log_to_nobody_in_child();
	open_waits_detach_in_child();
	shared_entries_detach_in_child(&open_runs);
	shared_entries_detach_in_child(&transaction_states);
	chunk_pool_detach_in_child();
	statement_memory_detach_in_child();
	return spare_ring(position);
}

struct ring *shared_ring_renew(int fd, bool *is_shared)
{
	uint64_t position;

	*is_shared = is_noted = false;
	if (!here.memory) /* a child of such a child */
		return spare_ring(0);
	position = ring_head((struct ring *)(here.memory + PAGE_BYTES));
	*is_shared = fd >= 0 && map_memory(fd);
	if (*is_shared)
		of_parent = NULL;
	else if (!of_parent)
		keep_front();
	return *is_shared || replace_memory() ? fill(position) : detach_memory(position);
}

/* --- in the other process -------------------------------------------------------------- */

/* Copies the memory from `at` to `end` to the same position in `to`. Not through a mapping: an
 * unavailable page would raise a signal, and a hole would be filled. */
static bool copy_to(void *to, const struct shared_ring *shared, size_t at, size_t end)
{
	while (at < end) {
		off_t data = lseek(shared->fd, (off_t)at, SEEK_DATA);
		off_t hole = data < 0 ? data : lseek(shared->fd, data, SEEK_HOLE);
		ssize_t size;

		if (hole < 0 || (size_t)data >= end)
			return hole >= 0 || errno == ENXIO; /* zeros to the end */
		size = (ssize_t)((size_t)hole < end ? (size_t)hole : end) - data;
		size = pread(shared->fd, (char *)to + data, (size_t)size, data);
		if (size <= 0)
			return false;
		at = (size_t)data + (size_t)size;
	}
	return true;
}

static bool copy(const struct shared_ring *shared, size_t at, size_t end)
{
	return copy_to(shared->memory, shared, at, end);
}

/* No size is believed, because the descriptor came from another process. */
static bool find_parts(struct shared_ring *shared)
{
	char *memory = shared->memory;
	struct front *front = shared->memory;
	const uint64_t ring_bytes = front->ring_bytes;

	if (memcmp(front->version, wire_version, sizeof(wire_version)) != 0 || ring_bytes > shared->size ||
	    ring_bytes % PAGE_BYTES != 0 || statements_offset(ring_bytes) > shared->size)
		return false;
	shared->identity = front->identity;
	shared->ring = ring_remains_find(memory + PAGE_BYTES, ring_bytes);
	shared->modules = (const struct module_log *)(memory + log_offset(ring_bytes));
	shared->modules_size = LOG_BYTES;
	shared->waits = memory + waits_offset(ring_bytes);
	shared->runs = memory + runs_offset(ring_bytes);
	shared->transactions = memory + transactions_offset(ring_bytes);
	shared->spans = memory + spans_offset(ring_bytes);
	shared->statements = memory + statements_offset(ring_bytes);
	shared->statements_size = shared->size - statements_offset(ring_bytes);
	return shared->ring && shared->statements_size <= statement_memory_bytes(STATEMENTS_MAX_MOST) &&
	       memchr(shared->identity.hostname, 0, sizeof(shared->identity.hostname)) &&
	       memchr(shared->identity.executable, 0, sizeof(shared->identity.executable)) &&
	       memchr(shared->identity.script, 0, sizeof(shared->identity.script));
}

static size_t offset_of(const struct shared_ring *shared, const void *part)
{
	return (size_t)((const char *)part - (const char *)shared->memory);
}

/* The memory that is being written to, and a page that takes the place of one there: shared, as then it is
 * mapped once more without new memory. */
static char *volatile written;
static volatile size_t written_size;
static char *spare;

static void replace_page(int number, siginfo_t *info, void *unused)
{
	char *page = (char *)((uintptr_t)info->si_addr / PAGE_BYTES * PAGE_BYTES);
	bool is_written = page >= written && page < written + written_size;

	(void)unused;
	if (!is_written || mremap(spare, 0, PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, page) == MAP_FAILED)
		sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL); /* it comes again */
}

bool shared_ring_guard(void)
{
	const struct sigaction action = { .sa_sigaction = replace_page, .sa_flags = SA_SIGINFO };
	void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	spare = page;
	*(volatile char *)spare = 0;
	return sigaction(SIGBUS, &action, NULL) == 0;
}

/* The command blocks all signals, which is death for this one. */
static sigset_t begin_to_write(const struct shared_ring *shared)
{
	sigset_t bus, before;

	written = shared->origin;
	written_size = offset_of(shared, shared->modules);
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &bus, &before);
	return before;
}

static void end_to_write(sigset_t before)
{
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	written_size = 0;
}

/* Whether its pages are like those of shared_ring_memory(). Pages of other files may be
 * unavailable, if the machine has no free huge pages or the file is truncated. */
static bool is_safe(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs status;

	return seals >= 0 && (seals & SEALS) == SEALS && fstatfs(fd, &status) == 0 &&
	       status.f_type == TMPFS_MAGIC;
}

static void *map(size_t size, int flags, int fd)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_NORESERVE | flags, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Except the copy of the records, whose positions belong to the reader. */
static bool copy_front(struct shared_ring *shared)
{
	const struct front *front = shared->memory;

	if (pread(shared->fd, shared->memory, 2 * PAGE_BYTES, 0) != 2 * PAGE_BYTES)
		return false;
	memcpy(shared->counters, front->counters, sizeof(shared->counters));
	shared->lost_children = front->lost_children;
	return true;
}

bool shared_ring_open_to_inspect(struct shared_ring *shared, int fd)
{
	struct stat status;

	if (!is_safe(fd) || fstat(fd, &status) || status.st_size < 2 * PAGE_BYTES)
		return false;
	*shared = (struct shared_ring){ .fd = fd, .size = (size_t)status.st_size };
	shared->memory = map(shared->size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!shared->memory)
		return false;
	if (copy_front(shared) && find_parts(shared))
		return true;
	shared_ring_close(shared);
	return false;
}

bool shared_ring_open(struct shared_ring *shared, int fd)
{
	if (!shared_ring_open_to_inspect(shared, fd))
		return false;
	shared->origin = map(offset_of(shared, shared->modules), MAP_SHARED, fd);
	if (!shared->origin)
		shared_ring_close(shared);
	return shared->origin != NULL;
}

/* The previous copy is no longer needed, so the pages become zeros again. */
static void forget_copy(struct shared_ring *shared)
{
	madvise((char *)shared->memory + 2 * PAGE_BYTES, shared->size - 2 * PAGE_BYTES, MADV_DONTNEED);
}

bool shared_ring_refresh(struct shared_ring *shared)
{
	char *ring = (char *)shared->memory + PAGE_BYTES;

	if (shared->is_copied)
		forget_copy(shared);
	shared->is_copied = false;
	if (!copy_front(shared) || !ring_remains_find(ring, offset_of(shared, shared->modules) - PAGE_BYTES))
		return false;
	shared->tail = ring_tail(shared->ring);
	shared->head = ring_head(shared->ring);
	return true;
}

void shared_ring_close(struct shared_ring *shared)
{
	if (shared->origin)
		munmap(shared->origin, offset_of(shared, shared->modules));
	munmap(shared->memory, shared->size);
}

static bool copy_records(void *context, const void *at, size_t size)
{
	const struct shared_ring *shared = context;

	return copy(shared, offset_of(shared, at), offset_of(shared, at) + size);
}

bool shared_ring_copy(struct shared_ring *shared)
{
	shared->is_copied = true;
	return ring_remains_copy(shared->ring, copy_records, shared) &&
	       copy(shared, offset_of(shared, shared->modules), shared->size);
}

static bool copy_entries(const struct shared_ring *shared, char *to, const struct shared_entries *entries,
                         size_t at)
{
	return copy_to(to, shared, at, at + entries->front) &&
	       copy_to(to, shared, at, at + shared_entries_used_bytes(entries, to + at));
}

/* What is open, into memory of the same size. */
static bool copy_open(const struct shared_ring *shared, char *to)
{
	const size_t waits = offset_of(shared, shared->waits);

	return copy_to(to, shared, waits, waits + open_waits_front_bytes()) &&
	       copy_to(to, shared, waits, waits + open_waits_used_bytes(to + waits)) &&
	       copy_entries(shared, to, &open_runs, offset_of(shared, shared->runs)) &&
	       copy_entries(shared, to, &transaction_states, offset_of(shared, shared->transactions));
}

static uint32_t keep_steady(const struct shared_ring *shared, const char *before, const char *after)
{
	const size_t waits = offset_of(shared, shared->waits), runs = offset_of(shared, shared->runs),
		     transactions = offset_of(shared, shared->transactions);

	open_waits_keep_steady(shared->waits, before + waits, after + waits);
	return shared_entries_keep_steady(&open_runs, shared->runs, before + runs, after + runs) +
	       shared_entries_keep_steady(&transaction_states, shared->transactions, before + transactions,
	                                  after + transactions);
}

/* A word that one copy and a later one have alike, and that no two states share, has not changed in between:
 * what was copied in that time is of one state. */
bool shared_ring_copy_open(struct shared_ring *shared, uint32_t *changed)
{
	char *before = map(shared->size, MAP_PRIVATE | MAP_ANONYMOUS, -1),
	     *after = map(shared->size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	bool is_copied = before && after && shared_ring_refresh(shared);

	shared->is_copied = true;
	is_copied = is_copied && copy_open(shared, before) && copy_open(shared, shared->memory) &&
	            copy_open(shared, after);
	if (is_copied)
		*changed = keep_steady(shared, before, after);
	if (before)
		munmap(before, shared->size);
	if (after)
		munmap(after, shared->size);
	return is_copied;
}

/* The modules after the records that need them, and runs that have not ended after their other records. */
bool shared_ring_copy_committed(struct shared_ring *shared)
{
	size_t modules = offset_of(shared, shared->modules);

	shared->is_copied = true;
	return copy_open(shared, shared->memory) &&
	       ring_remains_copy_committed(shared->ring, copy_records, shared) &&
	       copy(shared, modules, modules + shared->modules_size);
}

bool shared_ring_copy_statements(struct shared_ring *shared)
{
	size_t at = offset_of(shared, shared->statements);
	uint64_t folds;

	shared->is_copied = true;
	if (!copy(shared, at, at + PAGE_BYTES))
		return false;
	folds = statement_memory_folds(shared->statements);
	return folds % 2 == 0 && copy(shared, at, shared->size) && copy(shared, at, at + PAGE_BYTES) &&
	       statement_memory_folds(shared->statements) == folds;
}

void shared_ring_free(struct shared_ring *shared)
{
	uint64_t tail = ring_tail(shared->ring);
	sigset_t before;

	/* The copy may have received records of its own after them. */
	tail = tail < shared->head ? tail : shared->head;
	if (tail > shared->tail) {
		before = begin_to_write(shared);
		ring_remains_free((char *)shared->origin + PAGE_BYTES, shared->ring, shared->tail, tail);
		end_to_write(before);
	}
	shared->tail = tail;
}

void shared_ring_tell_plans_lost(struct shared_ring *shared, uint64_t lost)
{
	sigset_t before;

	if (((const struct front *)shared->memory)->plans_lost == lost)
		return;
	before = begin_to_write(shared);
	/* Relaxed: it depends on nothing else. */
	__atomic_store_n(&((struct front *)shared->origin)->plans_lost, lost, __ATOMIC_RELAXED);
	end_to_write(before);
}
