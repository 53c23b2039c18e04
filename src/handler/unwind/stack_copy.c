/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/unwind/stack_copy.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "base/own_calls.h"
#include "base/sys.h"

#define PAGE STACK_COPY_BYTES
#define NOTHING 1 /* no page's address */

static uintptr_t page_of(uintptr_t address)
{
	return address & ~(PAGE - 1);
}

/* Whether the page of `address` can be read. */
static bool can_kernel_read(uintptr_t address)
{
	enum { NO_SUCH_OPERATION = 0x7fff };
	const long result =
		syscall(SYS_rt_sigprocmask, NO_SUCH_OPERATION, page_of(address), NULL, sizeof(uint64_t));

	return result == -1 && errno == EINVAL;
}

static bool can_read(uintptr_t address)
{
	/* A kernel that checks the operation first would report every page as readable. The
	 * highest page, which no program has, shows that. Relaxed: an independent number. */
	enum { UNTRIED, WORKS, FAILS };
	static int tried;
	int now = __atomic_load_n(&tried, __ATOMIC_RELAXED);

	if (now == UNTRIED) {
		now = can_kernel_read(UINTPTR_MAX) ? FAILS : WORKS;
		__atomic_store_n(&tried, now, __ATOMIC_RELAXED);
	}
	/* Address 0 means no mask. */
	return now == WORKS && address >= PAGE && can_kernel_read(address);
}

/* Whether a seccomp filter may kill the process for process_vm_readv. */
static bool is_filtered(void)
{
	const int saved_errno = errno;

	if (own_call_is_forbidden(SYS_process_vm_readv))
		return true;
	const bool result = syscall(SYS_prctl, PR_GET_SECCOMP, 0ul, 0ul, 0ul, 0ul) > 0;

	errno = saved_errno; /* EINVAL: a kernel without filters */
	return result;
}

static bool kernel_copies(uintptr_t address, void *to, size_t size)
{
	const struct iovec local = { .iov_base = to, .iov_len = size };
	const struct iovec remote = { .iov_base = (void *)address, .iov_len = size };

	/* All arguments are longs: syscall() does not extend shorter ones. */
	return syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local, 1ul, &remote, 1ul, 0ul) ==
	       (long)size;
}

/* Reads beyond the host's objects, within a readable page: no sanitizer's concern. */
__attribute__((no_sanitize("address", "thread"))) static void
copy_bytes(void *to, const volatile unsigned char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((unsigned char *)to)[i] = from[i];
}

/* Within one page, copied or loaded. */
static bool read_in_page(struct stack_copy *copy, uintptr_t address, void *to, size_t size)
{
	const uintptr_t page = page_of(address);

	if (page != copy->held) {
		const bool is_word = !copy->page;

		copy->held = NOTHING;
		if (!copy->probes) {
			if (!kernel_copies(is_word ? address : page, is_word ? to : copy->page,
			                   is_word ? size : PAGE))
				copy->probes = errno != EFAULT; /* the kernel lacks or refuses the call */
			else if (is_word)
				return true;
			else
				copy->held = page;
		}
		if (copy->held != page && !(copy->probes && can_read(page)))
			return false;
		copy->held = page;
	}
	const unsigned char *from =
		copy->probes ? (const unsigned char *)address : copy->page + (address - page);
	/* Nearly always a word. No call of memcpy(), because a sanitizer intercepts it. */
	if (size == sizeof(uintptr_t))
		memcpy(to, from, sizeof(uintptr_t));
	else
		copy_bytes(to, from, size);
	return true;
}

bool stack_copy_read(struct stack_copy *copy, uintptr_t address, void *to, size_t size)
{
	const int saved_errno = errno;
	bool good = true;

	for (size_t part; good && size > 0; address += part, to = (char *)to + part, size -= part) {
		part = page_of(address) + PAGE - address;
		part = part < size ? part : size;
		good = read_in_page(copy, address, to, part);
	}
	errno = saved_errno;
	return good;
}

bool stack_copy_begin(struct stack_copy *copy, uintptr_t address)
{
	unsigned char byte;

	*copy = (struct stack_copy){ .page = copy->page, .held = NOTHING, .probes = is_filtered() };
	return stack_copy_read(copy, address, &byte, 1);
}

int stack_copy_again(const struct stack_copy *copies, int count)
{
	struct iovec local[STACK_COPIES_MAX], remote[STACK_COPIES_MAX];
	const int saved_errno = errno;
	long bytes = 0;

	for (int i = 0; i < count; i++) {
		local[i] = (struct iovec){ .iov_base = copies[i].page, .iov_len = PAGE };
		remote[i] = (struct iovec){ .iov_base = (void *)copies[i].held, .iov_len = PAGE };
	}
	/* Only what precedes an unreadable page is copied. */
	if (count && !is_filtered())
		bytes = syscall(SYS_process_vm_readv, syscall(SYS_getpid), local, (long)count, remote,
		                (long)count, 0ul);
	errno = saved_errno;
	return bytes > 0 ? (int)((uintptr_t)bytes / PAGE) : 0;
}

bool stack_copy_part(uintptr_t address, void *to, size_t size)
{
	struct stack_copy copy = { .held = NOTHING, .probes = is_filtered() };

	return stack_copy_read(&copy, address, to, size);
}

bool stack_copy_text(const char *text, char *to, size_t room, size_t *size)
{
	size_t read = 0;

	for (*size = 0; *size == read && read < room;) {
		const uintptr_t at = (uintptr_t)text + read, rest = PAGE - at % PAGE;
		const size_t part = rest < room - read ? rest : room - read;
		if (!stack_copy_part(at, to + read, part))
			return false;
		for (read += part; *size < read && to[*size] != '\0';)
			++*size;
	}
	return true;
}
