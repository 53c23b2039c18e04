/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions with frames that a compiler would build differently.
 */
	.text

/* A leaf function that saves nothing. Its return address is in x30. */
	.globl	leaf_trap
	.type	leaf_trap, @function
leaf_trap:
	.cfi_startproc
	brk	#0
	ret
	.cfi_endproc
	.size	leaf_trap, .-leaf_trap

/* Locals first, the frame record in the middle of the frame, the CFA from sp. */
	.globl	late_record
	.type	late_record, @function
late_record:
	.cfi_startproc
	sub	sp, sp, #4096
	.cfi_adjust_cfa_offset 4096
	stp	x29, x30, [sp, #32]
	.cfi_offset x29, -4064
	.cfi_offset x30, -4056
	blr	x0
	ldp	x29, x30, [sp, #32]
	.cfi_restore x29
	.cfi_restore x30
	add	sp, sp, #4096
	.cfi_adjust_cfa_offset -4096
	ret
	.cfi_endproc
	.size	late_record, .-late_record

/* The CFA is in x19, and a floating-point register is saved. */
	.globl	far_fp
	.type	far_fp, @function
far_fp:
	.cfi_startproc
	stp	x19, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_offset x19, -32
	.cfi_offset x30, -24
	str	d8, [sp, #16]
	.cfi_offset 72, -16 /* d8 */
	mov	x19, sp
	.cfi_def_cfa_register x19
	sub	sp, sp, #512
	blr	x0
	mov	sp, x19
	.cfi_def_cfa_register sp
	ldr	d8, [sp, #16]
	.cfi_restore 72
	ldp	x19, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x19
	.cfi_restore x30
	ret
	.cfi_endproc
	.size	far_fp, .-far_fp

/* Signal handlers return here, as to the kernel's own trampoline in the vdso. Its unwind information
 * begins one instruction earlier, because a return address is looked up minus one. */
	.cfi_startproc
	.cfi_signal_frame
	nop
	.globl	return_from_signal
	.type	return_from_signal, @function
return_from_signal:
	mov	x8, #139 /* rt_sigreturn */
	svc	#0
	.cfi_endproc
	.size	return_from_signal, .-return_from_signal

/* A PLT as linkers write it, without unwind information: its first entry, and others. */
	.macro entry register
	adrp	\register, leaf_trap
	ldr	x17, [\register, #8]
	add	\register, \register, #8
	br	x17
	.endm
	.globl	plt
plt:
	stp	x16, x30, [sp, #-16]!
	entry	x16
	.rept 3
	nop
	.endr
	entry	x16
	hint	#34 /* bti c */
	entry	x16
	entry	x15 /* not a PLT entry */
	.rept 4
	nop
	.endr

	.section .note.GNU-stack, "", %progbits
