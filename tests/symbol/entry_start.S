/* SPDX-License-Identifier: Apache-2.0 */
/* Start code like the C run-time's. With ENTRY_CALLS_ANOTHER or ENTRY_UNKNOWN_INSTRUCTION it proves
 * nothing. */
	.text
	.globl _start
	.type _start, @function
_start:
	.cfi_startproc
	.cfi_undefined rip
	xor %ebp, %ebp
	mov %rdx, %r9
	pop %rsi
	mov %rsp, %rdx
	and $-16, %rsp
	push %rax
	push %rsp
	xor %r8d, %r8d
	xor %ecx, %ecx
	lea main(%rip), %rdi
#ifdef ENTRY_UNKNOWN_INSTRUCTION
	add $1, %rdi
#endif
#ifdef ENTRY_CALLS_ANOTHER
	call *exit@GOTPCREL(%rip)
#else
	call *__libc_start_main@GOTPCREL(%rip)
#endif
	hlt
	.cfi_endproc
	.size _start, . - _start

	.section .note.GNU-stack, "", @progbits
