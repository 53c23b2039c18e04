/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/wal_index.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/own_calls.h"

/* Places in the head, in words of 32 bits. */
enum {
	WORD_VERSION,
	WORD_SIZES = 3,
	WORD_FRAMES,
	WORD_SALT = 8,
	WORD_COPIED = 24,
	WORD_MARKS,
	HEAD_WORDS = 30
};
#define INDEX_VERSION 3007000u
#define REGION_BYTES 32768

static bool copy_head(const volatile void *from, uint32_t words[HEAD_WORDS])
{
	const struct iovec local = { words, HEAD_WORDS * sizeof(*words) };
	const struct iovec remote = { (void *)(uintptr_t)from, local.iov_len };
	const int saved_errno = errno;
	const bool is_read = !own_call_is_forbidden(SYS_process_vm_readv) &&
	                     process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)local.iov_len;

	errno = saved_errno;
	return is_read;
}

/* The connection has mapped it, so its method only tells where. */
struct wal_index wal_index_read(const struct wal_call *call)
{
	volatile void *region = NULL;
	struct wal_index head = { .is_read = false };
	uint32_t words[HEAD_WORDS];
	const unsigned char *sizes = (const unsigned char *)&words[WORD_SIZES];
	uint16_t page;

	if (call->methods->iVersion < 2 ||
	    call->methods->xShmMap(call->file, 0, REGION_BYTES, 0, &region) != SQLITE_OK || !region ||
	    !copy_head(region, words) || words[WORD_VERSION] != INDEX_VERSION || !sizes[0])
		return head;
	memcpy(&page, sizes + 2, sizeof(page));
	head.is_read = true;
	head.page_size = page == 1 ? 65536 : page;
	head.frames = words[WORD_FRAMES];
	head.salt = words[WORD_SALT];
	head.copied = words[WORD_COPIED];
	memcpy(head.marks, &words[WORD_MARKS], sizeof(head.marks));
	return head;
}
