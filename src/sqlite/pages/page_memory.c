/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/pages/page_memory.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/lock.h"

#ifndef MADV_WIPEONFORK /* glibc 2.27 */
#define MADV_WIPEONFORK 18
#endif

#define REGION_BYTES (512u << 10)
#define LINE_BYTES 64u

/* At the beginning of the first region, so that it is zero in a child, too. */
struct root {
	struct page_files files;
	char *region; /* that is being used up */
	size_t left, taken;
};

static struct root *root; /* atomic */
LOCK_DEFINE(lock, LOCK_PAGE_MEMORY);

static void *map(size_t size)
{
	const int saved_errno = errno;
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory != MAP_FAILED && madvise(memory, size, MADV_WIPEONFORK)) {
		munmap(memory, size);
		memory = MAP_FAILED;
	}
	errno = saved_errno;
	return memory == MAP_FAILED ? NULL : memory;
}

static struct root *make_root(void)
{
	static bool is_refused; /* asked once */
	struct root *made;

	lock_acquire(&lock);
	made = root;
	if (!made && !is_refused) {
		made = map(sizeof(*made));
		is_refused = !made;
		/* Release: with the load below. */
		__atomic_store_n(&root, made, __ATOMIC_RELEASE);
	}
	lock_release(&lock);
	return made;
}

static struct root *root_here(void)
{
	struct root *known = __atomic_load_n(&root, __ATOMIC_ACQUIRE);

	return __builtin_expect(known != NULL, 1) ? known : make_root();
}

struct page_files *page_memory_files(void)
{
	struct root *here = root_here();

	return here ? &here->files : NULL;
}

struct page_files *page_memory_known_files(void)
{
	struct root *here = __atomic_load_n(&root, __ATOMIC_ACQUIRE);

	return here ? &here->files : NULL;
}

bool page_memory_is_scarce(void)
{
	struct root *here = __atomic_load_n(&root, __ATOMIC_ACQUIRE);

	return here && __atomic_load_n(&here->taken, __ATOMIC_RELAXED) > PAGE_MEMORY_MOST / 2;
}

void *page_memory_allocate(size_t size)
{
	struct root *here = root_here();
	void *taken = NULL;

	size = (size + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	if (!here || size > REGION_BYTES)
		return NULL;
	lock_acquire(&lock);
	if (size > here->left && here->taken + REGION_BYTES <= PAGE_MEMORY_MOST &&
	    (taken = map(REGION_BYTES))) {
		here->region = taken;
		here->left = REGION_BYTES;
		__atomic_store_n(&here->taken, here->taken + REGION_BYTES, __ATOMIC_RELAXED);
		taken = NULL;
	}
	if (size <= here->left) {
		taken = here->region;
		here->region += size;
		here->left -= size;
	}
	lock_release(&lock);
	return taken;
}
