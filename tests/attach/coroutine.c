/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose only thread prints a line, and then computes on a separate stack with no mapping around
 * it, until it is killed.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static void compute(void)
{
	if (write(1, "ready\n", 6) != 6)
		exit(1);
	for (volatile unsigned long i = 0;; i++)
		;
}

int main(void)
{
	enum { PAGE = 4096, SIZE = 4 * PAGE };
	static ucontext_t now, coroutine;
	char *stack = mmap(NULL, SIZE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || mprotect(stack + PAGE, SIZE, PROT_READ | PROT_WRITE) ||
	    getcontext(&coroutine))
		return 1;
	coroutine.uc_stack.ss_sp = stack + PAGE;
	coroutine.uc_stack.ss_size = SIZE;
	makecontext(&coroutine, compute, 0);
	return swapcontext(&now, &coroutine);
}
