/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers of running code, as a signal would leave them in a ucontext.
 */
#pragma once

#include <stddef.h>
#include <string.h>
#include <ucontext.h>

/* Sets the instruction and stack pointers, and the registers that a call keeps: what the
 * function that this is inlined to can be unwound from. Unlike getcontext() it makes no
 * system call. */
static inline __attribute__((always_inline)) void registers_here(ucontext_t *context)
{
	memset(context, 0, sizeof(*context));
#if defined(__x86_64__)
	__asm__ volatile(
		"leaq 1f(%%rip), %%rax\n"
		"1:\n\t"
		"movq %%rax, %c[rip](%[to])\n\t"
		"movq %%rsp, %c[rsp](%[to])\n\t"
		"movq %%rbp, %c[rbp](%[to])\n\t"
		"movq %%rbx, %c[rbx](%[to])\n\t"
		"movq %%r12, %c[r12](%[to])\n\t"
		"movq %%r13, %c[r13](%[to])\n\t"
		"movq %%r14, %c[r14](%[to])\n\t"
		"movq %%r15, %c[r15](%[to])"
		:
		: [to] "r"(context->uc_mcontext.gregs), [rip] "i"(8 * REG_RIP), [rsp] "i"(8 * REG_RSP),
		  [rbp] "i"(8 * REG_RBP), [rbx] "i"(8 * REG_RBX), [r12] "i"(8 * REG_R12),
		  [r13] "i"(8 * REG_R13), [r14] "i"(8 * REG_R14), [r15] "i"(8 * REG_R15)
		: "rax", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("adr x9, 1f\n"
	                 "1:\n\t"
	                 "mov x10, sp\n\t"
	                 "str x9, [%[to], %[pc]]\n\t"
	                 "str x10, [%[to], %[sp]]\n\t"
	                 "stp x19, x20, [%[to], %[x19]]\n\t"
	                 "stp x21, x22, [%[to], %[x19] + 16]\n\t"
	                 "stp x23, x24, [%[to], %[x19] + 32]\n\t"
	                 "stp x25, x26, [%[to], %[x19] + 48]\n\t"
	                 "stp x27, x28, [%[to], %[x19] + 64]\n\t"
	                 "stp x29, x30, [%[to], %[x19] + 80]"
	                 :
	                 : [to] "r"(&context->uc_mcontext), [pc] "i"(offsetof(mcontext_t, pc)),
	                   [sp] "i"(offsetof(mcontext_t, sp)), [x19] "i"(offsetof(mcontext_t, regs[19]))
	                 : "x9", "x10", "memory");
#endif
}
