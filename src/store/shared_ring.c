/* SPDX-License-Identifier: Apache-2.0 */
#include "store/shared_ring.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "modules/module_log.h"
#include "modules/modules.h"
#include "query/statement_memory.h"
#include "queryprof.h"
#include "sampler/open_waits.h"
#include "sampler/ring_reader.h"
#include "sampler/ring_remains.h"
#include "span/chunk_pool.h"

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

/* The memory begins with this, the ring follows at the next page, then the log, then waits, then spans,
 * then the counters of statements. */
struct front {
	char version[16];
	uint64_t ring_bytes; /* with the ring's own fields */
	struct writer_identity identity;
	struct losses losses;
};
_Static_assert(sizeof(struct front) <= PAGE_BYTES, "the front takes one page");

static struct {
	char *memory;
	size_t size;
	size_t ring_bytes; /* as ring_create() takes it */
	size_t statements_bytes;
} here;

struct losses *shared_ring_losses(void)
{
	static struct losses losses;

	return here.memory ? &((struct front *)here.memory)->losses : &losses;
}

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

static size_t spans_offset(size_t ring_bytes)
{
	return waits_offset(ring_bytes) + whole_pages(open_waits_bytes());
}

static size_t statements_offset(size_t ring_bytes)
{
	return spans_offset(ring_bytes) + whole_pages(chunk_pool_bytes());
}

/* --- in the process whose ring it is ------------------------------------------------- */

/* Memory that is promised and then not there is a SIGBUS where it is shared. The kernel
 * promises no more than it has in mode 2 only, and refuses there. */
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

/* A sealed descriptor of so many zeros; -1: refused. */
static int make_descriptor(size_t size)
{
	struct rlimit limit;
	int fd;

	/* Over it ftruncate() would send the host a signal. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < size)
		return -1;
	fd = memfd_create("queryprof", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0) /* older kernels */
		fd = memfd_create("queryprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, SEALS))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static char *log_here(void)
{
	return here.memory + log_offset(ring_memory_bytes(here.ring_bytes));
}

static struct ring *fill(uint64_t position)
{
	struct front *front = (struct front *)here.memory;

	strncpy(front->version, QUERYPROF_VERSION, sizeof front->version - 1);
	front->ring_bytes = ring_memory_bytes(here.ring_bytes);
	front->identity = *writer_identity_here();
	module_log_make(log_here(), LOG_BYTES);
	open_waits_place(here.memory + waits_offset(front->ring_bytes));
	statement_memory_place(here.memory + statements_offset(front->ring_bytes), here.statements_bytes);
	return ring_place(here.memory + PAGE_BYTES, here.ring_bytes, position);
}

struct ring *shared_ring_make(size_t ring_bytes, int *fd)
{
	size_t statements_bytes = statement_memory_bytes(statement_stats_max());
	size_t size = statements_offset(ring_memory_bytes(ring_bytes)) + statements_bytes;
	struct ring *ring;
	void *memory;

	*fd = is_memory_strict() ? -1 : make_descriptor(size);
	if (*fd < 0)
		return NULL;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (memory == MAP_FAILED) {
		close(*fd);
		return NULL;
	}
	here.memory = memory;
	here.size = size;
	here.ring_bytes = ring_bytes;
	here.statements_bytes = statements_bytes;
	ring = fill(0);
	modules_log_to((struct module_log *)log_here());
	chunk_pool_use(here.memory + spans_offset(ring_memory_bytes(ring_bytes)));
	return ring;
}

/* The modules are those of the parent, unless it has others already. */
static void copy_log(int fd)
{
	const struct module_log *log = (const struct module_log *)log_here();
	size_t size = module_log_size(log);

	if (module_log_generation(log) == modules_generation())
		(void)!pwrite(fd, log, size, (char *)log - here.memory);
}

static bool replace_memory(int flags, int fd)
{
	return mmap(here.memory, here.size, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_NORESERVE | flags, fd,
	            0) != MAP_FAILED;
}

static struct ring *spare_ring(uint64_t position)
{
	static _Alignas(PAGE_BYTES) char memory[PAGE_BYTES + SPARE_BYTES];

	memset(memory, 0, sizeof memory);
	return ring_place(memory, SPARE_BYTES, position);
}

/* Memory that is still mapped here is the parent's. */
static struct ring *leave_memory(uint64_t position)
{
	here.memory = NULL;
	modules_log_to_nobody_in_child();
	open_waits_leave_in_child();
	chunk_pool_leave_in_child();
	statement_memory_leave_in_child();
	return spare_ring(position);
}

struct ring *shared_ring_renew(int *fd)
{
	uint64_t position;

	*fd = -1;
	if (!here.memory) /* a child of such a child */
		return spare_ring(0);
	position = ring_head((struct ring *)(here.memory + PAGE_BYTES));
	*fd = make_descriptor(here.size);
	if (*fd >= 0) {
		copy_log(*fd);
		if (replace_memory(MAP_SHARED, *fd))
			return fill(position);
		close(*fd);
		*fd = -1;
	}
	return replace_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1) ? fill(position) : leave_memory(position);
}

/* --- in the other process -------------------------------------------------------------- */

/* No size is believed: the descriptor came from another process. That one may run, and change what is
 * there between its check and its use: so each is read once. */
static bool is_valid(struct shared_ring *shared)
{
	struct front *front = shared->memory;
	char *memory = shared->memory;
	const uint64_t ring_bytes = *(volatile uint64_t *)&front->ring_bytes;

	if (strncmp(front->version, QUERYPROF_VERSION, sizeof front->version) != 0 ||
	    ring_bytes > shared->size || ring_bytes % PAGE_BYTES != 0 ||
	    statements_offset(ring_bytes) > shared->size)
		return false;
	shared->identity = front->identity;
	atomic_signal_fence(memory_order_seq_cst); /* the copy is checked, not what it was copied from */
	shared->losses = &front->losses;
	shared->ring = ring_remains_find(memory + PAGE_BYTES, ring_bytes);
	shared->modules = (const struct module_log *)(memory + log_offset(ring_bytes));
	shared->modules_size = LOG_BYTES;
	shared->waits = memory + waits_offset(ring_bytes);
	shared->spans = memory + spans_offset(ring_bytes);
	shared->statements = memory + statements_offset(ring_bytes);
	shared->statements_size = shared->size - statements_offset(ring_bytes);
	return shared->ring && memchr(shared->identity.hostname, 0, sizeof shared->identity.hostname) &&
	       memchr(shared->identity.executable, 0, sizeof shared->identity.executable);
}

bool shared_ring_open(struct shared_ring *shared, int fd)
{
	struct stat status;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &status) || status.st_size < 2 * PAGE_BYTES)
		return false;
	shared->size = (size_t)status.st_size;
	shared->memory = mmap(NULL, shared->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared->memory == MAP_FAILED)
		return false;
	if (is_valid(shared))
		return true;
	shared_ring_close(shared);
	return false;
}

void shared_ring_close(struct shared_ring *shared)
{
	munmap(shared->memory, shared->size);
}
