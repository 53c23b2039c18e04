/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two libraries that are equal byte for byte, except for the size of a frame (ROOM) and its unwind
 * information. variant_dive(n, callback) makes n + 1 frames and calls the callback from the last one.
 */
	.text
	.globl	variant_dive
	.type	variant_dive, @function
	.p2align 4
variant_dive:
	.cfi_startproc
	subq	$ROOM, %rsp
	.cfi_adjust_cfa_offset ROOM
	testl	%edi, %edi
	jz	1f
	decl	%edi
	call	.Lagain
	jmp	2f
1:	call	*%rsi
2:	addq	$ROOM, %rsp
	.cfi_adjust_cfa_offset -ROOM
	ret
	.cfi_endproc
	.size	variant_dive, .-variant_dive
	.set	.Lagain, variant_dive

	.section .note.GNU-stack, "", @progbits
