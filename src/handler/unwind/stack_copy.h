/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory that may be unreadable, without the risk of a fault.
 *
 * The kernel copies it (process_vm_readv of the process itself). An address without memory is an
 * error, and so is a page that another thread unmaps or truncates meanwhile; there is never a signal.
 * Each page is copied once: a stack of some thirty frames takes one or two calls.
 *
 * Plain loads with a handler for SIGSEGV and SIGBUS would be faster. But those signals belong to the
 * host: once it installed another handler, the next such load would kill it.
 *
 * A seccomp filter may kill the process for process_vm_readv. So in a thread with a filter, and on a
 * kernel without the call, the kernel first reports whether a page is readable, and plain loads
 * follow. The call is rt_sigprocmask with an invalid operation: it copies a mask from the address and
 * then fails with EFAULT or EINVAL; every program makes this call. Between this call and the load
 * another thread could unmap the page. It cannot unmap the frames of the interrupted thread. It could
 * unmap a page to which a damaged stack has led the walk, or another thread's text (stack_copy_part).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The smallest page size. A larger page is copied in parts. */
#define STACK_COPY_BYTES ((uintptr_t)4096)

/* Zero-filled at first, except `page`. */
struct stack_copy {
	unsigned char *page; /* STACK_COPY_BYTES of memory; NULL: each word is copied alone */
	uintptr_t held;      /* the page that is copied to `page`, or that can be loaded */
	bool probes;         /* plain loads, after the kernel has reported the page as readable */
};

/* Begins, or begins again, with the stack of `address`. False: it cannot be read. */
bool stack_copy_begin(struct stack_copy *copy, uintptr_t address);

/* Copies the pages that these hold again, with one call of the kernel; each has a `page`. Returns how many of
 * the first ones hold what is there now. 0: stack_copy_begin() finds out why. */
#define STACK_COPIES_MAX 16
int stack_copy_again(const struct stack_copy *copies, int count);

/* Copies bytes of any memory, by the method of the beginning. False: it cannot be read. */
bool stack_copy_read(struct stack_copy *copy, uintptr_t address, void *to, size_t size);

/* Copies bytes that need not be a stack. False: some cannot be read. */
bool stack_copy_part(uintptr_t address, void *to, size_t size);

/* Copies a text up to its zero, or `room` bytes of it. `*size`: how many came. False: what
 * follows them cannot be read. */
bool stack_copy_text(const char *text, char *to, size_t room, size_t *size);
