/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LLVM's libunwind without our patches, linked into a module that exports one function: `peer_llvm_walk`.
 */
#include <libunwind.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

__attribute__((visibility("default"))) int peer_llvm_walk(const void *ucontext, uint64_t *trace, int max);

/* Its registers, in the order in which its context holds them. */
static const int order[] = {
	REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RDI, REG_RSI, REG_RBP, REG_RSP, REG_R8,
	REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

int peer_llvm_walk(const void *ucontext, uint64_t *trace, int max)
{
	const greg_t *registers = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip;
	int n = 0;

	memset(&context, 0, sizeof(context));
	for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		context.data[i] = (uint64_t)registers[order[i]];
	if (unw_init_local(&cursor, &context) != UNW_ESUCCESS)
		return 0;
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		trace[n++] = ip;
	} while (n < max && unw_step(&cursor) > 0);
	return n;
}
