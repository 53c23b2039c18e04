/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flame graph's page, as the build has put it together, for flamegraph.c.
 */
	.section .rodata.flame_graph_page, "a", %progbits
	.globl flame_graph_page
	.hidden flame_graph_page
flame_graph_page:
	.incbin QUERYPROF_FLAME_GRAPH_PAGE
	.globl flame_graph_page_end
	.hidden flame_graph_page_end
flame_graph_page_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
