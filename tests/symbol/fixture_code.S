/* SPDX-License-Identifier: Apache-2.0 */
/* Code whose extents are exact: 16 bytes with a size, 16 that belong to no symbol, a
 * function without a size, one with a label inside, and Rust's names. The hole's
 * symbol is data, so that it names no code. */
	.text
	.balign 16

	.globl fixture_sized
	.type fixture_sized, @function
fixture_sized:
	ret
	.fill 15, 1, 0xcc
	.size fixture_sized, . - fixture_sized

	.globl fixture_hole
	.type fixture_hole, @object
fixture_hole:
	.fill 16, 1, 0xcc
	.size fixture_hole, 16

	.globl fixture_unsized
	.type fixture_unsized, @function
fixture_unsized:
	ret
	.fill 15, 1, 0xcc

	.globl fixture_label_user
	.type fixture_label_user, @function
fixture_label_user:
	ret
	.fill 7, 1, 0xcc
fixture_label: /* local, no type: names nothing */
	.fill 8, 1, 0xcc

	.globl _RNvC7fixture4main
	.type _RNvC7fixture4main, @function
_RNvC7fixture4main:
	ret
	.fill 15, 1, 0xcc
	.size _RNvC7fixture4main, . - _RNvC7fixture4main

	.globl _ZN7fixture4work17h0123456789abcdefE
	.type _ZN7fixture4work17h0123456789abcdefE, @function
_ZN7fixture4work17h0123456789abcdefE:
	ret
	.fill 15, 1, 0xcc
	.size _ZN7fixture4work17h0123456789abcdefE, . - _ZN7fixture4work17h0123456789abcdefE

	.section .note.GNU-stack, "", @progbits
