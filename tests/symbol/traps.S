/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function with DWARF 4 debug information that wastes time or memory, as TRAP_… selects:
 *   NAMESPACES  namespaces, or
 *   BLOCKS      blocks of the function; each is inside the previous block, which has it as its sibling, too
 *   RANGES      many functions that all have the same long list of ranges, and one function inlined into each
 */
#define DEPTH 100
#define MANY 2000

	.text
	.globl trap_function
	.type trap_function, %function
trap_function:
	ret
	nop
.Lend:
	.size trap_function, . - trap_function

/* A number, a tag, and whether it has children. */
.macro begin_abbreviation number, tag, children
	.uleb128 \number, \tag
	.byte \children
.endm
#define SIBLING .uleb128 0x01, 0x13          /* DW_FORM_ref4 */
#define CODE .uleb128 0x11, 0x01, 0x12, 0x06 /* low_pc: DW_FORM_addr, high_pc: DW_FORM_data4 */
#define LIST .uleb128 0x55, 0x17        /* DW_AT_ranges: DW_FORM_sec_offset */
#define NAME .uleb128 0x03, 0x08        /* DW_FORM_string */
#define END .uleb128 0, 0

	.section .debug_abbrev, "", %progbits
.Labbreviations:
	begin_abbreviation 1, 0x11, 1 /* compile_unit */
	CODE
	END
	begin_abbreviation 2, 0x39, 1 /* namespace */
	SIBLING
	END
	begin_abbreviation 3, 0x2e, 1 /* subprogram */
	CODE
	END
	begin_abbreviation 4, 0x0b, 1 /* lexical_block */
	SIBLING
	CODE
	END
	begin_abbreviation 5, 0x2e, 1 /* subprogram */
	LIST
	END
	begin_abbreviation 6, 0x1d, 0 /* inlined_subroutine */
	CODE
	NAME
	END
	.byte 0

.macro put_code
	.8byte trap_function
	.4byte .Lend - trap_function
.endm
.macro put_inlined
	.uleb128 6
	put_code
	.asciz "trap_inlined"
.endm

	.section .debug_info, "", %progbits
.Linfo:
	.4byte .Linfo_end - . - 4
	.2byte 4
	.4byte .Labbreviations
	.byte 8
	.uleb128 1
	put_code
#if defined(TRAP_NAMESPACES)
	.rept DEPTH
	.uleb128 2
	.4byte . + 4 - .Linfo
	.endr
	.zero DEPTH + 1
#elif defined(TRAP_BLOCKS)
	.uleb128 3
	put_code
	.rept DEPTH
	.uleb128 4
	.4byte . + 16 - .Linfo
	put_code
	.endr
	.zero DEPTH + 2
#elif defined(TRAP_RANGES)
	.rept MANY
	.uleb128 5
	.4byte .Lranges
	put_inlined
	.byte 0
	.endr
#else
	.uleb128 3
	put_code
	put_inlined
	.byte 0
#endif
	.byte 0
.Linfo_end:

	.section .debug_ranges, "", %progbits
.Lranges:
	.rept MANY
	.8byte 0, .Lend - trap_function /* from the unit's start on */
	.endr
	.8byte 0, 0

	.section .debug_str, "MS", %progbits, 1
	.asciz "a text"

	.section .note.GNU-stack, "", %progbits
