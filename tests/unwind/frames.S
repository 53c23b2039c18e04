/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions whose unwind information a compiler would not write. Each stops at an
 * int3 or calls its argument, so that the test sees a trace through it.
 */
	.text

/* No unwind information. Calls its argument. */
	.globl	frame_without_information
	.type	frame_without_information, @function
frame_without_information:
	pushq	%rbx
	call	*%rdi
	popq	%rbx
	ret
	.size	frame_without_information, .-frame_without_information

/* The CFA is in rbx over an aligned stack, as in the loader's resolver. */
	.globl	frame_by_rbx
	.type	frame_by_rbx, @function
frame_by_rbx:
	.cfi_startproc
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	movq	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	subq	$200, %rsp
	andq	$-64, %rsp
	call	*%rdi
	movq	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	frame_by_rbx, .-frame_by_rbx

/* The CFA is in rax, which is DWARF's register 0. */
	.globl	frame_by_rax
	.type	frame_by_rax, @function
frame_by_rax:
	.cfi_startproc
	movq	%rsp, %rax
	.cfi_def_cfa_register %rax
	subq	$1000, %rsp
	int3
	movq	%rax, %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size	frame_by_rax, .-frame_by_rax

/* The caller's rbp is not saved, but given as a value: this frame's CFA. */
	.globl	frame_with_value
	.type	frame_with_value, @function
frame_with_value:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	call	callee_with_value
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	frame_with_value, .-frame_with_value

	.type	callee_with_value, @function
callee_with_value:
	.cfi_startproc
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	.cfi_escape 0x14, 6, 0 /* DW_CFA_val_offset: rbp is CFA + 0 */
	xorl	%ebp, %ebp
	call	*%rdi
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	leaq	8(%rsp), %rbp
	ret
	.cfi_endproc
	.size	callee_with_value, .-callee_with_value

/* Many pairs of remember and restore, one nested. */
	.globl	frame_with_memory
	.type	frame_with_memory, @function
frame_with_memory:
	.cfi_startproc
	.rept 40
	.cfi_remember_state
	nop
	.cfi_def_cfa_offset 4096
	nop
	.cfi_restore_state
	.endr
	.cfi_remember_state
	.cfi_remember_state
	nop
	.cfi_def_cfa_offset 4096
	nop
	.cfi_restore_state
	nop
	.cfi_restore_state
	int3
	ret
	.cfi_endproc
	.size	frame_with_memory, .-frame_with_memory

/* A register that the CIE describes is restored to the CIE's rule. */
	.globl	frame_restored
	.type	frame_restored, @function
frame_restored:
	.cfi_startproc
	.cfi_undefined %rip
	nop
	.cfi_restore %rip
	int3
	ret
	.cfi_endproc
	.size	frame_restored, .-frame_restored

/* The return address 0 marks the bottom. */
	.globl	frame_at_bottom
	.type	frame_at_bottom, @function
frame_at_bottom:
	.cfi_startproc
	popq	%rax
	.cfi_adjust_cfa_offset -8
	pushq	$0
	.cfi_adjust_cfa_offset 8
	int3
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	ret
	.cfi_endproc
	.size	frame_at_bottom, .-frame_at_bottom

/* (top of a stack, callee): like a goroutine that calls C. Frame pointers, no unwind information. The
 * callee runs on the caller's stack, after a stack switch that has no frame of its own. The first function
 * returns to the second instruction of goroutine_end. */
	.globl	goroutine_run, goroutine_outer, goroutine_inner, goroutine_calls_c, goroutine_end
	.type	goroutine_run, @function
	.type	goroutine_outer, @function
	.type	goroutine_inner, @function
	.type	goroutine_calls_c, @function
	.type	goroutine_end, @function
goroutine_run:
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	movq	%rsp, %rbx
	movq	%rdi, %rsp
	leaq	goroutine_end+1(%rip), %rax
	pushq	%rax
	xorl	%ebp, %ebp
	jmp	goroutine_outer
	.size	goroutine_run, .-goroutine_run
goroutine_end:
	nop
	call	1f
	nop
1:	movq	%rbx, %rsp
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.size	goroutine_end, .-goroutine_end
goroutine_outer:
	pushq	%rbp
	movq	%rsp, %rbp
	call	goroutine_inner
	popq	%rbp
	ret
	.size	goroutine_outer, .-goroutine_outer
goroutine_inner:
	pushq	%rbp
	movq	%rsp, %rbp
	call	goroutine_calls_c
	popq	%rbp
	ret
	.size	goroutine_inner, .-goroutine_inner
goroutine_calls_c:
	movq	%rsp, %r12
	leaq	-64(%rbx), %rsp
	andq	$-16, %rsp
	call	*%rsi
	movq	%r12, %rsp
	ret
	.size	goroutine_calls_c, .-goroutine_calls_c

/* (callee): return like the functions of libgcc that land an exception, here in their caller's frame. The
 * call that copies the registers is missing (handler/unwind/distrust.h). In the second function, the call
 * is further from the end. */
	.macro landing name, room
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	push %rdx
	.cfi_offset %rdx, -24
	push %rax
	.cfi_offset %rax, -32
	call *%rdi
	.fill \room, 1, 0x90
	lea 8(%rbp), %rcx
	mov 0(%rbp), %rbp
	.cfi_def_cfa %rcx, 8
	.cfi_same_value %rbp
	mov %rcx, %rsp
	.cfi_def_cfa %rsp, 8
	pop %rcx
	.cfi_def_cfa_offset 0
	.cfi_register %rip, %rcx
	jmp *%rcx
	.cfi_endproc
	.size \name, . - \name
	.endm

	landing frame_landing_soon, 0
	landing frame_landing_later, 300

/* (callee): as clang writes it if both branches of a conditional jump begin with the same addition to the
 * stack pointer, or subtraction (handler/unwind/distrust.h). They stop after it. */
	.globl	frame_released_early
	.type	frame_released_early, @function
frame_released_early:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	subq	$512, %rsp
	.cfi_def_cfa_offset 528
	call	*%rdi
	addq	$512, %rsp
	int3
	testq	%rax, %rax
	je	1f
	.cfi_def_cfa_offset 16
1:	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	frame_released_early, .-frame_released_early

	.globl	frame_taken_early
	.type	frame_taken_early, @function
frame_taken_early:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	call	*%rdi
	subq	$32, %rsp
	int3
	cmpl	$1, %eax
	jne	1f
	.cfi_def_cfa_offset 48
1:	addq	$32, %rsp
	.cfi_def_cfa_offset 16
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	frame_taken_early, .-frame_taken_early

	.section .note.GNU-stack, "", @progbits
