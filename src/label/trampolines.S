/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trampolines of label sets: label_trampolines(argument, function, number, around) calls
 * function(argument), with the two words on its frame while it runs. All are equal but for their
 * addresses; a set has one of its own, so that a reader of stacks alone knows the set by the
 * return address. handler/labels.c knows where the call and the words are.
 *
 * Number 0 is that of sets without one of their own, and the one that stacks are shown with.
 */
#if defined(__aarch64__)
#define BODY                                      \
	stp x29, x30, [sp, #-32]!               ; \
	.cfi_def_cfa_offset 32                  ; \
	.cfi_offset x29, -32                    ; \
	.cfi_offset x30, -24                    ; \
	stp x2, x3, [sp, #16]                   ; \
	blr x1                                  ; \
	ldp x29, x30, [sp], #32                 ; \
	.cfi_restore x29                        ; \
	.cfi_restore x30                        ; \
	.cfi_def_cfa_offset 0                   ; \
	ret
#else
#define BODY                                      \
	sub $24, %rsp                           ; \
	.cfi_def_cfa_offset 32                  ; \
	mov %rdx, (%rsp)                        ; \
	mov %rcx, 8(%rsp)                       ; \
	call *%rsi                              ; \
	add $24, %rsp                           ; \
	.cfi_def_cfa_offset 8                   ; \
	ret
#endif

	.altmacro
	.macro one number
	.balign 32
	.type qp_label_trampoline_\number, %function
qp_label_trampoline_\number:
	.cfi_startproc
	BODY
	.cfi_endproc
	.size qp_label_trampoline_\number, . - qp_label_trampoline_\number
	.endm

	.text
	.balign 32
	.globl label_trampolines
	.hidden label_trampolines
label_trampolines:
	.set index, 0
	.rept 4097
	one %index
	.set index, index + 1
	.endr
	.balign 32
	.globl label_trampolines_end
	.hidden label_trampolines_end
label_trampolines_end:

	.section .note.GNU-stack, "", %progbits
