/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread of a process does at this moment: its stack, and the statements that it executes.
 *
 * A thread is stopped only while its registers and its stack are copied. It is unwound afterwards. A thread
 * inside sqlite3_step() is stopped once more: its text must be read while the statement runs, since the same
 * memory may be that of another statement a microsecond later.
 */
#ifndef QUERYPROF_CMD_ATTACH_LOOK_H
#define QUERYPROF_CMD_ATTACH_LOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/attach/sqlite_code.h"
#include "cmd/attach/target.h"

#define LOOK_FRAMES 256
#define LOOK_STATEMENTS 16
#define LOOK_THREADS 4096
#define LOOK_TEXTS (16u << 20)
#define LOOK_TEXT_MAX (64u << 10)

/* One that a frame of sqlite3_step() executes. */
struct look_statement {
	uint32_t frame;      /* its number in the stack */
	uint32_t library;    /* its number in the codes */
	uint32_t text, size; /* in the texts; size 0: it is not known */
	bool is_cut;
};

struct look_thread {
	pid_t id;
	int error;  /* that it could not be stopped, an errno value; EAGAIN: in uninterruptible sleep */
	char state; /* as /proc has it */
	int call;   /* the system call that it waits in; -1: none */
	uint64_t stopped_ns; /* the longer stop, from when it was seen */
	bool is_whole;       /* the stack ends where the thread began */
	uint32_t frame_count;
	uint64_t frames[LOOK_FRAMES]; /* leaf first, addresses within the calls */
	uint32_t statement_count;     /* innermost first */
	struct look_statement statements[LOOK_STATEMENTS];
};

struct look {
	char sentence[SENTENCE_SIZE]; /* why nothing was seen; "": it was */
	uint32_t count, unseen;       /* unseen: threads beyond LOOK_THREADS */
	uint32_t text_used;
	struct look_thread threads[LOOK_THREADS];
	char texts[LOOK_TEXTS];
};

/* NULL: there is no memory. With a sentence if the process does not permit it. */
struct look *look_take(const struct target *target, const struct sqlite_codes *codes);
void look_free(struct look *look);

#endif
