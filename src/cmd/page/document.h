/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON document that the server of `queryprof live` makes of a trace file and keeps.
 *
 * A child process makes it, because a file of a stranger may have anything in it: if reading it takes too
 * long or too much, or crashes, the child ends and the server does not. One child makes one document at a
 * time for all who wait for it. The document is kept until the file has changed, and for a file that grows,
 * in any case for some times as long as making it took.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What tells that a file, or its write-ahead log, has changed. */
struct file_state {
	uint64_t numbers[6];
};

struct document {
	/* In the child: prints the text. A command_result. */
	int (*make)(const char *path);
	const char *path;
	uint64_t least_age_ns; /* it is not made again before that */

	char *text; /* the newest one; NULL: none was made */
	size_t size;
	bool has_failed; /* the newest attempt; `text` is NULL */
	uint64_t number; /* of attempts that have ended */
	struct file_state state;
	uint64_t began_ns, ended_ns;

	pid_t child; /* 0: nobody makes it */
	int output,
		said; /* the child's text, in memory; the pipe for its complaints, which ends when it does */
	struct file_state next_state;
};

/* Whether the newest text may be served: the file is as it was, or the text is young. */
bool document_is_fresh(const struct document *document);

/* Starts a child, unless there is one. False: there is none, and the document has failed. */
bool document_start(struct document *document);

/* When `said` can be read: reads it. True: the child has ended, and `text` is new or has_failed. */
bool document_read(struct document *document);

/* How long until the child has taken too long, in ns; UINT64_MAX: nobody makes it. 0: it is ended now. */
uint64_t document_left_ns(const struct document *document);

/* Ends the child, and forgets the text. */
void document_close(struct document *document);
