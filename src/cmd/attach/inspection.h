/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread of a process does at this moment: its stack, and the statements that it executes.
 * A thread is stopped only while its registers and its stack are copied; the copy is unwound afterwards. A
 * thread inside sqlite3_step() is stopped a second time, because its text must be read while the statement
 * runs: a microsecond later the same memory may belong to another statement.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/attach/sqlite_code.h"
#include "cmd/attach/target.h"

#define INSPECTION_FRAMES 256
#define INSPECTION_STATEMENTS 16
#define INSPECTION_THREADS 4096
#define INSPECTION_TEXTS (16u << 20)
#define INSPECTION_TEXT_MAX (64u << 10)

/* A statement that a frame of sqlite3_step() executes. */
struct inspected_statement {
	uint32_t frame;      /* its number in the stack */
	uint32_t library;    /* its number in the codes */
	uint32_t text, size; /* in the texts; size 0: it is not known */
	bool is_cut;
};

struct inspected_thread {
	pid_t id;
	int error;           /* why it could not be stopped, an errno value; EAGAIN: uninterruptible sleep */
	char state;          /* as /proc has it */
	int call;            /* the system call that it waits in; -1: none */
	uint64_t stopped_ns; /* the longer of its stops, from the moment when this process saw it */
	bool is_whole;       /* the stack ends where the thread began */
	uint32_t frame_count;
	uint64_t frames[INSPECTION_FRAMES]; /* leaf first, addresses within the calls */
	uint32_t statement_count;           /* innermost first */
	struct inspected_statement statements[INSPECTION_STATEMENTS];
};

struct inspection {
	char sentence[SENTENCE_SIZE]; /* why nothing was seen; "": no error */
	uint32_t count, unseen;       /* unseen: threads after the first INSPECTION_THREADS */
	uint32_t text_used;
	struct inspected_thread threads[INSPECTION_THREADS];
	char texts[INSPECTION_TEXTS];
};

/* NULL: out of memory, or the process does not permit it; `sentence` has the reason. */
struct inspection *inspection_make(const struct target *target, const struct sqlite_codes *codes);
void inspection_free(struct inspection *inspection);
