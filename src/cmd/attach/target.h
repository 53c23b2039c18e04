/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process to record or to inspect, seen from outside: whether that is possible, and where its functions
 * are. It stops and changes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"
#include "cmd/attach/symbols.h"
#include "wire/attach_request.h"

enum object_kind {
	OBJECT_OTHER,
	OBJECT_LOADER,
	OBJECT_LIBC,   /* with the libraries that were parts of it */
	OBJECT_MALLOC, /* replaces libc's malloc() */
	OBJECT_RECORDER,
};

/* A mapped file. */
struct target_object {
	enum object_kind kind;
	uint64_t start, end, base;
	char *path;
};

#define SENTENCE_SIZE 400

struct target {
	pid_t process;
	const char *command; /* that reads it */
	int turn; /* a descriptor: no other command of ours stops its threads; -1: it is not known */
	VECTOR(struct target_object) objects;
	struct symbols libc, loader, parts; /* parts: libdl, libpthread of before glibc 2.34 */
	uint64_t dlopen;
	uint64_t attached;   /* the recorder's function, 0: it is not loaded */
	uint64_t attachment; /* and its variable */
	struct attachment now;
};

/* Waits until other commands have finished with the process. False: it cannot be recorded; `sentence` has
 * the reason and what to do. Close it in both cases. */
bool target_open(struct target *target, pid_t process, char sentence[SENTENCE_SIZE]);

/* The same for `dump`, which loads and calls nothing: any C library, or none. */
bool target_open_to_inspect(struct target *target, pid_t process, char sentence[SENTENCE_SIZE]);
void target_close(struct target *target);

/* Whether the process is recorded for that command: the command attached to it or to a process that forked
 * it. */
bool target_is_recorded(pid_t process, pid_t command);

/* Writes why the kernel does not permit tracing the process. Returns false. */
bool target_refuse(const struct target *target, char sentence[SENTENCE_SIZE]);

/* The object at the address; NULL: none. */
const struct target_object *target_object_at(const struct target *target, uint64_t address);

/* Whether `stack` is in the stack of a thread whose structure is at `self` (the FS base), which the kernel
 * or libc made. Stacks of coroutines and signal handlers may be small. */
bool target_is_thread_stack(pid_t process, uint64_t stack, uint64_t self);
