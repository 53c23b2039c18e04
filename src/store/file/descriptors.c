/*
 * A host that becomes a daemon, or is about to start another program, may close every
 * descriptor there is, ours with its own; and what it opens next gets their numbers.
 * A page of the trace file written to such a number would be in the host's file.
 *
 * So the store's threads have a descriptor table of their own (Linux 5.9): nothing that
 * the host closes is ours, and nothing of ours is in its /proc/self/fd, counts towards
 * its limit, or goes to its children. One call makes the table and empties it: not even
 * for a moment is there another descriptor of the host's pipes, whose end would keep
 * somebody waiting.
 *
 * Where that call is refused, the table is the host's. For that it is remembered which
 * file stands behind each of ours (device and inode), and before each use the kernel is
 * asked whether it still does. What is not ours any more is an error (EBADF) to the
 * private SQLite: the connection is closed, without the descriptors that are gone, and
 * the file opened again.
 *
 * Nothing is written as soon as any of them has gone: the locks that made a write
 * safe may have gone with it.
 *
 * Between the question and the write another thread of the host's may still close the
 * number and open it again: less than a microsecond, once in a page. In a table of our
 * own nobody does; the question stays, for a thread that should not be where it is.
 *
 * A table without a lock: slots are claimed by compare-and-swap, so that a fork in the
 * middle leaves nothing locked.
 */
#include "store/file/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older headers know neither. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2u
#endif

/* A sanitizer tells what it has found on the descriptor 2. To that of threads one number
 * is one descriptor in all of a process: ours are others than the host's there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIRST_CLOSED 3u
#else
#define FIRST_CLOSED 0u
#endif
#ifdef __SANITIZE_THREAD__
#define FIRST_FREE 200
#else
#define FIRST_FREE 3
#endif

/* Ours start here where the limit allows: out of the way of hosts that count on the
 * lowest ones. */
#define DESCRIPTOR_MIN 200

/* A connection needs two or three; there is one for each table of ours that the host
 * reads at one time. */
#define SLOTS 1024

#define FREE (-1)
#define CLAIMED (-2)

static struct slot {
	int fd_and_1; /* atomic; plus one, so that zeroed memory is free */
	dev_t device;
	ino_t inode;
} slots[SLOTS];
static int used; /* slots that were ever claimed: one behind the last */

static bool is_own; /* relaxed atomic: set before the file is opened */

void descriptors_separate(void)
{
	bool own = !syscall(SYS_close_range, FIRST_CLOSED, ~0u, CLOSE_RANGE_UNSHARE);

	/* What is written to the standard ones, by the C library at an abort(), must not
	 * come to a file of ours: these are of a kind that cannot be written. */
	for (long fd = FIRST_CLOSED; own && fd >= 0 && fd < FIRST_FREE; fd++)
		fd = syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
	__atomic_store_n(&is_own, own, __ATOMIC_RELAXED);
}

bool descriptors_are_own(void)
{
	return __atomic_load_n(&is_own, __ATOMIC_RELAXED);
}

static int slot_fd(const struct slot *slot)
{
	/* Acquire: what the slot says of it was written before. */
	return __atomic_load_n(&slot->fd_and_1, __ATOMIC_ACQUIRE) - 1;
}

static void set_fd(struct slot *slot, int fd)
{
	__atomic_store_n(&slot->fd_and_1, fd + 1, __ATOMIC_RELEASE);
}

static struct slot *claim_slot(void)
{
	for (int i = 0; i < SLOTS; i++) {
		int expected = FREE + 1;
		int known = __atomic_load_n(&used, __ATOMIC_RELAXED);

		if (!__atomic_compare_exchange_n(&slots[i].fd_and_1, &expected, CLAIMED + 1, false,
		                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		while (known <= i && !__atomic_compare_exchange_n(&used, &known, i + 1, false,
		                                                  __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		return &slots[i];
	}
	return NULL;
}

/* The slot in which `fd` is what `status` says. */
static struct slot *find_slot(int fd, const struct stat *status)
{
	int count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++) {
		if (slot_fd(&slots[i]) == fd && slots[i].device == status->st_dev &&
		    slots[i].inode == status->st_ino)
			return &slots[i];
	}
	return NULL;
}

int descriptors_keep(int fd)
{
	struct slot *slot;
	struct stat status;
	int higher;

	if (fd < 0)
		return fd;
	higher = fd < DESCRIPTOR_MIN ? fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN) : -1;
	if (higher >= 0) {
		close(fd);
		fd = higher;
	}
	slot = claim_slot();
	if (!slot || fstat(fd, &status)) {
		if (slot)
			set_fd(slot, FREE);
		close(fd);
		errno = EMFILE;
		return -1;
	}
	slot->device = status.st_dev;
	slot->inode = status.st_ino;
	set_fd(slot, fd);
	return fd;
}

bool descriptors_has(int fd)
{
	struct stat status;

	return fd >= 0 && !fstat(fd, &status) && find_slot(fd, &status);
}

bool descriptors_intact(void)
{
	int count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++) {
		int fd = slot_fd(&slots[i]);

		/* Again: its owner may have closed it meanwhile. */
		if (fd >= 0 && !descriptors_has(fd) && slot_fd(&slots[i]) == fd)
			return false;
	}
	return true;
}

/* Forgets what was kept under this number and is there no more. */
static void forget(int fd)
{
	int count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (int i = 0; i < count; i++) {
		if (slot_fd(&slots[i]) == fd) {
			set_fd(&slots[i], FREE);
			return;
		}
	}
}

void descriptors_close(int fd)
{
	struct stat status;
	struct slot *slot;

	if (fd < 0)
		return;
	slot = fstat(fd, &status) ? NULL : find_slot(fd, &status);
	if (!slot) {
		forget(fd);
		return;
	}
	set_fd(slot, FREE);
	close(fd);
}

/* --- SQLite's system calls ---------------------------------------------------------- */

static int (*lock_call)(int fd, int command, void *argument);

static bool may_read(int fd)
{
	if (descriptors_has(fd))
		return true;
	errno = EBADF;
	return false;
}

static bool may_write(int fd)
{
	/* Its own question last: the shortest time from the answer to the write. */
	if (descriptors_intact() && descriptors_has(fd))
		return true;
	errno = EBADF;
	return false;
}

static int guarded_open(const char *path, int flags, int mode)
{
	return descriptors_keep(open(path, flags, mode));
}

static int guarded_close(int fd)
{
	descriptors_close(fd);
	return 0;
}

static int guarded_fstat(int fd, struct stat *status)
{
	return may_read(fd) ? fstat(fd, status) : -1;
}

static ssize_t guarded_pread(int fd, void *bytes, size_t size, off_t offset)
{
	return may_read(fd) ? pread(fd, bytes, size, offset) : -1;
}

static ssize_t guarded_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	return may_write(fd) ? pwrite(fd, bytes, size, offset) : -1;
}

static int guarded_ftruncate(int fd, off_t size)
{
	return may_write(fd) ? ftruncate(fd, size) : -1;
}

static int guarded_fchmod(int fd, mode_t mode)
{
	return may_write(fd) ? fchmod(fd, mode) : -1;
}

static int guarded_fchown(int fd, uid_t user, gid_t group)
{
	return may_write(fd) ? fchown(fd, user, group) : -1;
}

static int guarded_fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return may_read(fd) ? lock_call(fd, command, argument) : -1;
}

static void *guarded_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	return may_read(fd) ? mmap(address, size, protection, flags, fd, offset) : MAP_FAILED;
}

void descriptors_guard(sqlite3_vfs *vfs, int (*lock)(int fd, int command, void *argument))
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} calls[] = {
		{ "open", (sqlite3_syscall_ptr)guarded_open },
		{ "close", (sqlite3_syscall_ptr)guarded_close },
		{ "fstat", (sqlite3_syscall_ptr)guarded_fstat },
		{ "pread", (sqlite3_syscall_ptr)guarded_pread },
		{ "pread64", (sqlite3_syscall_ptr)guarded_pread },
		{ "pwrite", (sqlite3_syscall_ptr)guarded_pwrite },
		{ "pwrite64", (sqlite3_syscall_ptr)guarded_pwrite },
		{ "ftruncate", (sqlite3_syscall_ptr)guarded_ftruncate },
		{ "fchmod", (sqlite3_syscall_ptr)guarded_fchmod },
		{ "fchown", (sqlite3_syscall_ptr)guarded_fchown },
		{ "fcntl", (sqlite3_syscall_ptr)guarded_fcntl },
		{ "mmap", (sqlite3_syscall_ptr)guarded_mmap },
	};

	lock_call = lock;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		vfs->xSetSystemCall(vfs, calls[i].name, calls[i].call);
}
