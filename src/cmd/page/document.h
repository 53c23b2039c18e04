/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON document that the server of `queryprof live` makes from a trace file and caches.
 *
 * A child process makes it, because a stranger's file may contain anything: if reading it takes too long or
 * too much memory, or crashes, only the child ends. One child at a time makes a document for all who wait for
 * it. The document is valid until the file changes; for a file that grows, it is valid for at least some
 * times as long as making it took.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Shows whether a file or its write-ahead log has changed. */
struct file_state {
	uint64_t numbers[6];
};

struct document {
	/* In the child: prints the text. A command_result. */
	int (*make)(const char *path);
	const char *path;
	uint64_t least_age_ns; /* no new one is made before that */

	char *text; /* the newest one; NULL: none yet */
	size_t size;
	bool has_failed; /* the newest attempt; `text` is NULL */
	uint64_t number; /* of finished attempts */
	struct file_state state;
	uint64_t began_ns, ended_ns;

	pid_t child;      /* 0: none */
	int output, said; /* the child's text, in memory; the pipe for its complaints, closed at its end */
	struct file_state next_state;
};

/* Whether the newest text may be served, because the file is unchanged or the text is young. */
bool document_is_fresh(const struct document *document);

/* Starts a child, unless there is one. False: there is none, and the document has failed. */
bool document_start(struct document *document);

/* Reads `said` when it is readable. True: the child has ended, and `text` is new or has_failed. */
bool document_read(struct document *document);

/* The time in ns until the child has taken too long; UINT64_MAX: no child; 0: this call has ended it. */
uint64_t document_left_ns(const struct document *document);

/* Ends the child, and frees the text. */
void document_close(struct document *document);
