/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that the stopped thread runs in the target. rbx is the address of its struct stub_data (injection.c), and rsp
 * the end of its own stack. It ends by returning from a signal that there was not, to where the thread was: so it needs
 * nobody if the command is killed meanwhile. A command that lives sees STATE_DONE, and restores the thread itself, which
 * also lets the kernel continue a system call that it had interrupted.
 */
#ifdef __x86_64__

#define STATE 0
#define FD 4
#define LOADS 8
#define DLOPEN 16
#define FUNCTION 24
#define REQUEST 32
#define HANDLE 40
#define FRAME 48
#define NAME 64
#define PATH 96

/* Until the command has written this state, or about so many cycles. ZF: it has. */
.macro await state, shift
	rdtsc
	shl $32, %rdx
	lea (%rdx,%rax), %r12
1:	mov $24, %eax		/* sched_yield(), because the command may need this processor */
	syscall
	cmpl $\state, STATE(%rbx)
	je 2f
	rdtsc
	shl $32, %rdx
	lea (%rdx,%rax), %rax
	sub %r12, %rax
	shr $\shift, %rax
	jz 1b
	cmpl $\state, STATE(%rbx)
2:
.endm

	.section .rodata
	.globl attach_stub, attach_stub_end
	.hidden attach_stub, attach_stub_end
	.p2align 4
attach_stub:
	cld
	cmpl $0, LOADS(%rbx)
	je 20f
	mov $319, %eax		/* memfd_create(), not executable as a program */
	lea NAME(%rbx), %rdi
	mov $9, %esi
	syscall
	test %eax, %eax
	jns 10f
	mov $319, %eax		/* older kernels */
	lea NAME(%rbx), %rdi
	mov $1, %esi
	syscall
10:	mov %eax, FD(%rbx)
	movl $1, STATE(%rbx)
	await 2, 33
	jne 15f
	cmpl $0, FD(%rbx)
	js 30f
	lea PATH(%rbx), %rdi
	mov $0x102, %esi	/* RTLD_NOW | RTLD_GLOBAL */
	call *DLOPEN(%rbx)
	mov %rax, HANDLE(%rbx)
15:	cmpl $0, FD(%rbx)
	js 30f
	mov $3, %eax		/* close() */
	mov FD(%rbx), %edi
	syscall
	mov HANDLE(%rbx), %rax
	test %rax, %rax
	jz 30f
	mov (%rax), %rax	/* l_addr */
	add %rax, FUNCTION(%rbx)
20:	mov REQUEST(%rbx), %rdi
	mov HANDLE(%rbx), %rsi
	call *FUNCTION(%rbx)
30:	movl $3, STATE(%rbx)
	await 4, 31
	mov FRAME(%rbx), %rsp
	mov $15, %eax		/* rt_sigreturn() */
	syscall
attach_stub_end:

#endif
	.section .note.GNU-stack,"",%progbits
