/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets and clears the trap flag, with unwind information that is right at every instruction. clang's
 * builtins for the flags lack it for their push.
 */
	.text
	.macro	change_flag name:req, change:vararg
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	pushfq
	.cfi_adjust_cfa_offset 8
	\change
	popfq
	.cfi_adjust_cfa_offset -8
	ret /* the first instruction that traps after trap_on's popfq */
	.cfi_endproc
	.size	\name, .-\name
	.endm

	change_flag trap_on, orq $0x100, (%rsp)
	change_flag trap_off, andq $~0x100, (%rsp)

	.section .note.GNU-stack, "", @progbits
