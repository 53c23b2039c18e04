/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a stopped thread of another process may call the loader: reads the frames of its stack, with the
 * CFI of its files.
 */
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "cmd/attach/target.h"

struct frames;

/* NULL: libdw is not installed. */
struct frames *frames_open(const struct target *target);

/* Why the thread, which is stopped with these registers, may hold a lock of the loader, of malloc(), of
 * libc or of the recorder. NULL: it holds none. */
const char *frames_refuse(struct frames *frames, pid_t thread, const struct user_regs_struct *registers);

/* The checks that need only the position. */
const char *frames_refuse_position(const struct frames *frames, uint64_t position);
