/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/attach/walk.h"

#define FRAMES_MAX 1024

struct frame {
	const struct target_object *object; /* NULL: none, as compiled code */
	const char *name;                   /* libc's function; NULL: not known */
};

struct frames {
	const struct target *target;
	struct walk *walk;
	size_t count;
	struct frame list[FRAMES_MAX]; /* leaf first */
};

struct frames *frames_open(const struct target *target)
{
	struct walk *walk = walk_open(target->process);
	struct frames *frames = walk ? calloc(1, sizeof(*frames)) : NULL;

	if (!frames) {
		walk_close(walk);
		return NULL;
	}
	frames->target = target;
	frames->walk = walk;
	return frames;
}

/* --- what the frames mean ------------------------------------------------------------------------ */

/* Functions of libc in which a thread waits, or which it passes through, without a lock of libc. */
static const char harmless[] =
	"__close __connect __fcntl64 __nanosleep __open __poll __pread64 __pwrite64 __read __select __send "
	"__sigsuspend __wait __write accept accept4 clock_nanosleep close connect epoll_pwait epoll_wait "
	"fcntl fcntl64 fdatasync flock fstat fstat64 fsync ftruncate ftruncate64 getpid ioctl lseek lseek64 "
	"nanosleep open open64 openat pause poll ppoll pread pread64 preadv pselect pthread_cond_clockwait "
	"pthread_cond_timedwait pthread_cond_wait pthread_join pthread_mutex_lock pwrite pwrite64 pwritev "
	"read readv recv recvfrom recvmsg sched_yield select sem_clockwait sem_timedwait sem_wait send "
	"sendmsg sendto sigsuspend sigtimedwait sigwait sigwaitinfo sleep stat stat64 syscall usleep wait "
	"wait3 wait4 waitid waitpid write writev";

static bool is_harmless(const char *name)
{
	return name && text_has_word(harmless, name);
}

static struct frame frame_at(const struct frames *frames, uint64_t address)
{
	struct frame frame = { target_object_at(frames->target, address), NULL };

	if (frame.object && frame.object->kind == OBJECT_LIBC) {
		frame.name = symbols_name(&frames->target->libc, address);
		if (!frame.name)
			frame.name = symbols_name(&frames->target->parts, address);
	}
	return frame;
}

static bool add_frame(void *context, Dwfl_Frame *frame, uint64_t address)
{
	struct frames *frames = context;

	(void)frame;
	if (frames->count == FRAMES_MAX)
		return false;
	frames->list[frames->count++] = frame_at(frames, address);
	return true;
}

static enum object_kind kind_at(const struct frames *frames, size_t i)
{
	return frames->list[i].object ? frames->list[i].object->kind : OBJECT_OTHER;
}

const char *frames_refuse_position(const struct frames *frames, uint64_t position)
{
	const struct frame frame = frame_at(frames, position);

	switch (frame.object ? frame.object->kind : OBJECT_OTHER) {
	case OBJECT_LOADER: return "its threads are in the dynamic loader";
	case OBJECT_MALLOC: return "its threads are in malloc()";
	case OBJECT_RECORDER: return "its threads are in queryprof's code";
	case OBJECT_LIBC:
		/* Code without a name is a part of a function whose name the next frame has. */
		return frame.name && !is_harmless(frame.name) ? "its threads are in the C library" : NULL;
	default: return NULL;
	}
}

const char *frames_refuse(struct frames *frames, pid_t thread, const struct user_regs_struct *registers)
{
	size_t leaf = 0, root;

	frames->count = 0;
	if (!walk_frames(frames->walk, thread, &(struct walk_start){ .registers = registers }, add_frame,
	                 frames) ||
	    !frames->count)
		return "the stacks of its threads cannot be read to their ends";
	/* The function of libc that the program has called, and what it calls. */
	while (leaf < frames->count && kind_at(frames, leaf) == OBJECT_LIBC)
		leaf++;
	if (leaf == frames->count || (leaf && !is_harmless(frames->list[leaf - 1].name)))
		return "its threads are in the C library";
	/* The beginning of a thread. The first thread begins in the program's `_start`. */
	root = frames->count;
	if (root > leaf + 1 && frames->list[root - 2].name &&
	    strncmp(frames->list[root - 2].name, "__libc_start_main", 17) == 0)
		root--;
	while (root > leaf && kind_at(frames, root - 1) == OBJECT_LIBC) {
		const char *name = frames->list[--root].name;

		if (name && (strcmp(name, "exit") == 0 || strcmp(name, "quick_exit") == 0))
			return "it is ending";
	}
	for (size_t i = 0; i < root; i++) {
		const enum object_kind kind = kind_at(frames, i);

		if (kind == OBJECT_LOADER)
			return "its threads are in the dynamic loader";
		if (kind == OBJECT_MALLOC)
			return "its threads are in malloc()";
		if (kind == OBJECT_RECORDER && i == 0)
			return "its threads are in queryprof's code";
		if (kind == OBJECT_LIBC && i >= leaf)
			return "its threads are in code that the C library calls";
	}
	return NULL;
}
