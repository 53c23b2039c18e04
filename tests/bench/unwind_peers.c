/* SPDX-License-Identifier: Apache-2.0 */
/* See unwind_peers.h. */
#include "unwind_peers.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "handler/unwind/unwind.h"
#include "wire/record.h"
#include "modules/publish.h"

struct unwind_stack peer_stack;
struct unwind_memo *peer_memo;

static uint64_t trace[STACK_FRAMES_MAX];
static void *addresses[STACK_FRAMES_MAX];

static struct code_map *without_cache; /* the current map without its rules */
static int (*nongnu_backtrace)(void **, int);
static int (*gperftools_trace)(void **, int, int, const void *);
static int (*llvm_walk)(const void *, uint64_t *, int);

/* Works in code built with frame pointers only, and ends at the C library's frames. */
static int walk_frame_pointers(const void *context)
{
	const ucontext_t *at = context;
	uintptr_t fp = (uintptr_t)at->uc_mcontext.gregs[REG_RBP];
	uintptr_t low = (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
	const uintptr_t end = peer_stack.end - 16;
	int n = 0;

	trace[n++] = (uint64_t)at->uc_mcontext.gregs[REG_RIP];
	while (fp >= low && fp < end && fp % 8 == 0 && n < STACK_FRAMES_MAX) {
		const uintptr_t *frame = (const uintptr_t *)fp;
		if (frame[1] == 0)
			break;
		trace[n++] = frame[1];
		low = fp + 16;
		fp = frame[0];
	}
	return n;
}

static int walk_cache(const void *context)
{
	return unwind_addresses(context, &peer_stack, NULL, trace, STACK_FRAMES_MAX).depth;
}

static int walk_memo(const void *context)
{
	return unwind_addresses(context, &peer_stack, peer_memo, trace, STACK_FRAMES_MAX).depth;
}

/* Each frame is parsed, as if it were seen for the first time. */
static int walk_miss(const void *context)
{
	const struct code_map *map = code_map_current();

	publish_code_map(without_cache);
	const int depth = walk_cache(context);
	publish_code_map(map);
	return depth;
}

static int walk_nongnu(const void *context)
{
	(void)context;
	return nongnu_backtrace(addresses, STACK_FRAMES_MAX);
}

static int walk_glibc(const void *context)
{
	(void)context;
	return backtrace(addresses, STACK_FRAMES_MAX);
}

static int walk_llvm(const void *context)
{
	return llvm_walk(context, trace, STACK_FRAMES_MAX);
}

static int walk_gperftools(const void *context)
{
	return gperftools_trace(addresses, STACK_FRAMES_MAX, 0, context);
}

struct peer peers[PEERS] = {
	[PEER_FRAME_POINTERS] = { "fp", "frame pointers", walk_frame_pointers, "", false, 1 },
	[PEER_MEMO] = { "memo", "ours, memo", walk_memo, "", false, 1 },
	[PEER_CACHE] = { "cache", "ours, rule cache", walk_cache, "", false, 6 },
	[PEER_MISS] = { "miss", "ours, nothing cached", walk_miss, "", false, 80 },
	[PEER_NONGNU] = { "nongnu", "nongnu unw_backtrace", NULL, "libunwind8", true, 6 },
	[PEER_GLIBC] = { "glibc", "glibc backtrace", walk_glibc, "", true, 120 },
	[PEER_LLVM] = { "llvm", "LLVM, unmodified", NULL, "its source", false, 200 },
	[PEER_GPERFTOOLS] = { "gperftools", "gperftools", NULL, "libgoogle-perftools4", true, 500 },
};

static void *find(const char *library, const char *symbol)
{
	void *handle = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;

	return handle ? dlsym(handle, symbol) : NULL;
}

bool peers_open(const char *llvm_module)
{
	if ((nongnu_backtrace = (int (*)(void **, int))find("libunwind.so.8", "unw_backtrace")))
		peers[PEER_NONGNU].walk = walk_nongnu;
	/* C++: GetStackTraceWithContext(void **, int, int, const void *) */
	if ((gperftools_trace = (int (*)(void **, int, int, const void *))find(
		     "libprofiler.so.0", "_Z24GetStackTraceWithContextPPviiPKv")))
		peers[PEER_GPERFTOOLS].walk = walk_gperftools;
	if ((llvm_walk = (int (*)(const void *, uint64_t *, int))find(llvm_module, "peer_llvm_walk")))
		peers[PEER_LLVM].walk = walk_llvm;
	return (peer_memo = calloc(1, unwind_memo_bytes)) != NULL;
}

bool peers_see_modules(void)
{
	const struct code_map *map = code_map_current();
	const size_t size = sizeof(*map) + map->count * sizeof(map->ranges[0]);

	free(without_cache);
	if ((without_cache = malloc(size)) == NULL)
		return false;
	memcpy(without_cache, map, size);
	without_cache->rules = NULL;
	return true;
}
