/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page, as the build has put it together, for page.c.
 */
#ifdef QUERYPROF_PAGE
	.section .rodata.page_bytes, "a", %progbits
	.globl page_bytes
	.hidden page_bytes
page_bytes:
	.incbin QUERYPROF_PAGE
	.globl page_bytes_end
	.hidden page_bytes_end
page_bytes_end:
	.byte 0
#endif
	.section .note.GNU-stack, "", %progbits
