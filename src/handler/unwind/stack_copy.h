/*
 * Memory of which nothing is known, read without the risk of a fault.
 *
 * The kernel copies it (process_vm_readv, from the process to itself): what is not
 * there is an error, and what another thread unmaps or truncates at this very moment is
 * an error as well, never a signal. A page is copied once, so that a trace of some
 * thirty frames takes one or two calls.
 *
 * A load that may fault, stepped over by a handler for SIGSEGV and SIGBUS, would be
 * faster. But those signals are the host's: our handler would stand in front of its own
 * (a crash reporter's, a virtual machine's, a sanitizer's), would show in what it reads
 * back of its settings, and would be gone as soon as it installs another; the next such
 * load would then kill the process. Nothing of the host is touched here.
 *
 * Filters of system calls (seccomp) may be there to kill whoever makes this one. So a
 * thread that has a filter is asked for first, and where there is one, or a kernel
 * without the call, pages are read as they are, each once the kernel has said that it
 * can be read: rt_sigprocmask with an operation that does not exist copies a mask from
 * the address and fails, either because that was not readable or because of the
 * operation; every program makes this call. Between that answer and the read another
 * thread could take the page away. Frames of the interrupted thread, which stands still,
 * are nothing that it would take; only a trace that a damaged stack has led elsewhere
 * could be there. So could another thread's text (stack_copy_part), if it is freed
 * between the two and its page given back at once.
 */
#ifndef QUERYPROF_HANDLER_UNWIND_STACK_COPY_H
#define QUERYPROF_HANDLER_UNWIND_STACK_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The smallest that pages are: a larger one is copied in several. */
#define STACK_COPY_BYTES ((uintptr_t)4096)

/* Zero-filled at first. */
struct stack_copy {
	unsigned char *page; /* STACK_COPY_BYTES of memory; NULL: each word is copied alone */
	uintptr_t held;      /* the page that is in `page`, or can be read */
	uintptr_t reached;   /* the highest page known to be readable without a gap */
	bool by_asking;
};

/* Begins, or begins again, with the stack that `address` is on. False: it cannot be
 * read. */
bool stack_copy_begin(struct stack_copy *copy, uintptr_t address);

void stack_copy_end(struct stack_copy *copy);

/* In a forked child, before its other threads. */
void stack_copy_reset_in_child(void);

/* Copies `size` <= 8 bytes. False: they cannot be read, or not all pages from where
 * it began up to there. */
bool stack_copy_read(struct stack_copy *copy, uintptr_t address, void *to, size_t size);

/* Copies bytes of one page, on no stack in particular. False: they cannot be read. */
bool stack_copy_part(uintptr_t address, void *to, size_t size);

/* Whether everything from where it began up to `address` can be read. */
bool stack_copy_reaches(struct stack_copy *copy, uintptr_t address);

#endif
