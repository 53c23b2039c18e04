/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/libdw.h"

#define FRAMES_MAX 1024

struct frame {
	const struct target_object *object; /* NULL: none, as compiled code */
	const char *name;                   /* of libc's function; NULL: not known */
};

struct frames {
	const struct target *target;
	const struct libdw *libdw;
	Dwfl *dwfl;
	pid_t thread;
	const struct user_regs_struct *registers;
	size_t count;
	struct frame list[FRAMES_MAX]; /* leaf first */
};

/* --- what libdw asks for ---------------------------------------------------------------------- */

static struct frames *opened; /* libdw passes no context to find_elf() */

static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file,
                    Elf **elf)
{
	char path[PATH_MAX];
	int fd;

	if (*name != '/')
		return opened->libdw->dwfl_linux_proc_find_elf(module, data, name, base, file, elf);
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)opened->target->process, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return opened->libdw->dwfl_linux_proc_find_elf(module, data, name, base, file, elf);
	*file = strdup(path);
	return fd;
}

static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                             const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **argument)
{
	struct frames *frames = context;

	(void)dwfl;
	if (*argument)
		return 0;
	*argument = frames;
	return frames->thread;
}

static bool get_thread(Dwfl *dwfl, pid_t thread, void *context, void **argument)
{
	(void)dwfl, (void)thread;
	*argument = context;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	const struct frames *frames = context;

	(void)dwfl;
	return object_read(&(struct object_memory){ .process = frames->target->process }, address, word,
	                   sizeof(*word));
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct frames *frames = context;
	const struct user_regs_struct *from = frames->registers;
	/* In DWARF's order. */
	const Dwarf_Word values[] = { from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
		                      from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
		                      from->r12, from->r13, from->r14, from->r15, from->rip };

	return frames->libdw->dwfl_thread_state_registers(thread, 0, sizeof(values) / sizeof(values[0]),
	                                                  values);
}

static const Dwfl_Callbacks callbacks = { .find_elf = find_elf, .find_debuginfo = find_no_debuginfo };
static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

struct frames *frames_open(const struct target *target)
{
	const struct libdw *libdw = libdw_load();
	struct frames *frames = libdw && libdw->dwfl_begin ? calloc(1, sizeof(*frames)) : NULL;

	if (!frames)
		return NULL;
	frames->target = target;
	frames->libdw = libdw;
	opened = frames;
	frames->dwfl = libdw->dwfl_begin(&callbacks);
	if (!frames->dwfl || libdw->dwfl_linux_proc_report(frames->dwfl, target->process) ||
	    libdw->dwfl_report_end(frames->dwfl, NULL, NULL) ||
	    !libdw->dwfl_attach_state(frames->dwfl, NULL, target->process, &thread_callbacks, frames)) {
		frames_close(frames);
		return NULL;
	}
	return frames;
}

void frames_close(struct frames *frames)
{
	if (frames && frames->dwfl)
		frames->libdw->dwfl_end(frames->dwfl);
	free(frames);
}

/* --- what the frames mean ------------------------------------------------------------------------ */

/* Functions of libc in which a thread waits, or passes through, and holds no lock of libc's. */
static const char *const harmless[] = {
	"accept",
	"accept4",
	"clock_nanosleep",
	"close",
	"connect",
	"epoll_pwait",
	"epoll_wait",
	"fcntl",
	"fcntl64",
	"fdatasync",
	"flock",
	"fsync",
	"ftruncate",
	"ftruncate64",
	"getpid",
	"ioctl",
	"lseek",
	"lseek64",
	"nanosleep",
	"pause",
	"poll",
	"ppoll",
	"pread",
	"pread64",
	"preadv",
	"pselect",
	"pthread_cond_clockwait",
	"pthread_cond_timedwait",
	"pthread_cond_wait",
	"pthread_join",
	"pthread_mutex_lock",
	"pwrite",
	"pwrite64",
	"pwritev",
	"read",
	"readv",
	"recv",
	"recvfrom",
	"recvmsg",
	"sched_yield",
	"select",
	"sem_clockwait",
	"sem_timedwait",
	"sem_wait",
	"send",
	"sendmsg",
	"sendto",
	"sigsuspend",
	"sigtimedwait",
	"sigwait",
	"sigwaitinfo",
	"sleep",
	"syscall",
	"usleep",
	"wait",
	"wait3",
	"wait4",
	"waitid",
	"waitpid",
	"write",
	"writev",
	"__select",
	"__poll",
	"__read",
	"__write",
	"__nanosleep",
	"__wait",
	"__pread64",
	"__pwrite64",
	"__sigsuspend",
	"__connect",
	"__send",
	"__close",
	"__fcntl64",
	"__open",
	"open",
	"open64",
	"openat",
	"stat",
	"fstat",
	"fstat64",
	"stat64",
};

static bool is_harmless(const char *name)
{
	for (size_t i = 0; name && i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (strcmp(name, harmless[i]) == 0)
			return true;
	return false;
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

static int add_frame(Dwfl_Frame *state, void *context)
{
	struct frames *frames = context;
	bool is_activation;
	Dwarf_Addr position;

	if (frames->count == FRAMES_MAX || !frames->libdw->dwfl_frame_pc(state, &position, &is_activation))
		return DWARF_CB_ABORT;
	/* A call that is the last instruction of its function returns to the next one. */
	frames->list[frames->count++] = frame_at(frames, is_activation ? position : position - 1);
	return DWARF_CB_OK;
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
		/* Without a name: a part of a function, whose name the next frame has. */
		return frame.name && !is_harmless(frame.name) ? "its threads are in the C library" : NULL;
	default: return NULL;
	}
}

const char *frames_refuse(struct frames *frames, pid_t thread, const struct user_regs_struct *registers)
{
	size_t leaf = 0, root;

	frames->thread = thread;
	frames->registers = registers;
	frames->count = 0;
	if (frames->libdw->dwfl_getthread_frames(frames->dwfl, thread, add_frame, frames) || !frames->count)
		return "the stacks of its threads cannot be read to their ends";
	/* The function of libc that the program has called, and what it calls. */
	while (leaf < frames->count && kind_at(frames, leaf) == OBJECT_LIBC)
		leaf++;
	if (leaf == frames->count || (leaf && !is_harmless(frames->list[leaf - 1].name)))
		return "its threads are in the C library";
	/* A thread's beginning; that of the first one is the program's `_start`. */
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
