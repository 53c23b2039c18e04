/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a thread of another process, by the CFI of its files: libdw unwinds from registers that were
 * read while the thread was stopped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "symbol/libdw.h"

struct walk;

/* Where a walk begins. */
struct walk_start {
	const struct user_regs_struct *registers;
	/* A copy of the stack, read instead of the process, which may then run meanwhile. NULL: none. */
	const unsigned char *copy;
	uint64_t at; /* of its first byte, in the process */
	size_t size;
};

/* Visits a frame, leaf first, with an address inside the calling instruction. False ends the walk. */
typedef bool walk_visit(void *context, Dwfl_Frame *frame, uint64_t address);

/* NULL: libdw is not installed, or the process cannot be read. One at a time. */
struct walk *walk_open(pid_t process);
void walk_close(struct walk *walk);

/* False: the stack cannot be read to its end, or `visit` has ended the walk. */
bool walk_frames(struct walk *walk, pid_t thread, const struct walk_start *start, walk_visit *visit,
                 void *context);

/* The register, by DWARF's number, as it was in that frame. False: it is not known, or libdw is older than
 * 0.188. */
bool walk_register(const struct walk *walk, Dwfl_Frame *frame, unsigned number, uint64_t *value);

#define WALK_STACK_POINTER 7 /* DWARF's number of rsp */
