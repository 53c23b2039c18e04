/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our unwinder and others in one process, with the same interface: from the context of an interrupted thread
 * to the number of frames found.
 *
 * The others are loaded at run time, each with private symbols, because three of them define the same names.
 * If one is not installed, its `walk` is NULL.
 */
#ifndef TESTS_BENCH_UNWIND_PEERS_H
#define TESTS_BENCH_UNWIND_PEERS_H

#include <stdbool.h>

#include "handler/unwind/unwind.h"

enum peer_id {
	PEER_FRAME_POINTERS,
	PEER_MEMO,
	PEER_CACHE,
	PEER_MISS,
	PEER_NONGNU,
	PEER_GLIBC,
	PEER_LLVM,
	PEER_GPERFTOOLS,
	PEERS,
};

struct peer {
	const char *key, *name;
	int (*walk)(const void *ucontext);
	const char *missing; /* what to install when `walk` is NULL */
	bool by_itself;      /* starts at its caller, through the handler's own frames */
	int slow;            /* about how many times as long as a frame-pointer walk */
};

extern struct peer peers[PEERS];

/* The context that all of them unwind. Set before a walk. */
extern struct unwind_stack peer_stack;
extern struct unwind_memo *peer_memo;

/* Opens the other unwinders. False: there is no memory for the library's unwinder. */
bool peers_open(const char *llvm_module);

/* Call it when all code is mapped and modules_init() or modules_refresh() has seen it. */
bool peers_see_modules(void);

#endif
