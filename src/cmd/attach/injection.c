/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/injection.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/attach/frames.h"
#include "cmd/attach/helper.h"
#include "cmd/attach/stopped.h"
#include "cmd/file/file_map.h"
#include "cmd/ui/process_files.h"

/* The time to find a thread that holds no lock, and the time until the call has returned. */
#define SEARCH_NS (5 * NS_PER_S)
#define CALL_NS (5 * NS_PER_S)
#define NAP_NS 1000000

/* --- the memory in the target ------------------------------------------------------------------- */

enum {
	REGION_CODE = 0,
	REGION_DATA = 4096,
	REGION_FRAME = 8192,
	REGION_XSTATE = REGION_FRAME + 2048, /* aligned as the processor wants it */
	REGION_REQUEST = REGION_XSTATE + XSTATE_MAX,
	REGION_STACK = 40960,
	REGION_SIZE = 512 << 10,
};
_Static_assert(REGION_REQUEST + sizeof(struct attach_request) <= REGION_STACK, "room for the request");
_Static_assert(sizeof(ucontext_t) <= REGION_XSTATE - REGION_FRAME, "room for the frame");

/* stub.S has the offsets. */
enum stub_state { STUB_BEGINS, STUB_WANTS_FILE, STUB_HAS_FILE, STUB_DONE };
struct stub_data {
	uint32_t state; /* enum stub_state */
	int32_t fd;
	uint64_t loads, dlopen, function, request, handle, frame, unused;
	char name[32], path[64];
};

struct borrowed;

extern const char attach_stub[], attach_stub_end[];

struct helper {
	struct injection *injection;
	const struct target *target;
	const struct attach_request *request;
	const char *library; /* the file's name, */
	const void *file;    /* its content, */
	size_t size;         /* and how much of that the loader maps */
	uint64_t function;   /* queryprof_attached() in the file */
	struct frames *frames;
	uint64_t region;
	uint64_t instruction, restores; /* in libc: syscall and return; rt_sigreturn() */
	struct borrowed *borrowed;      /* NULL: no mapping */
};

static bool write_memory(const struct helper *helper, uint64_t at, const void *from, size_t size)
{
	struct iovec here = { (void *)from, size }, there = { (void *)(uintptr_t)at, size };

	return process_vm_writev(helper->target->process, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool read_memory(const struct helper *helper, uint64_t at, void *to, size_t size)
{
	return object_read(&(struct object_memory){ .process = helper->target->process }, at, to, size);
}

static bool fail(const struct helper *helper, const char *sentence)
{
	snprintf(helper->injection->sentence, sizeof(helper->injection->sentence), "%s", sentence);
	return false;
}

/* --- the signal frame by which the thread restores itself ------------------------------------------ */

#define MAGIC1 0x46505853u
#define MAGIC2 0x46505845u
#define X_COMPONENTS 64
#define X_TILES (3ull << 17) /* are in the frame only if the program asked for them */

/* The end of the processor's state with these components. */
static uint32_t xstate_end(uint64_t components)
{
	uint32_t end = 576, size, offset, c, d;

	for (unsigned i = 2; i < X_COMPONENTS; i++)
		if (components >> i & 1 && __get_cpuid_count(0xd, i, &size, &offset, &c, &d) &&
		    offset + size > end)
			end = offset + size;
	return end;
}

struct software_bytes {
	uint32_t magic1, extended_size;
	uint64_t components;
	uint32_t xstate_size, unused[7];
};

/* Returns the size of the frame. */
static size_t fill_frame(const struct helper *helper, const struct stopped *stopped, unsigned char *frame)
{
	const struct user_regs_struct from = stopped_again(stopped);
	unsigned char *xstate = frame + (REGION_XSTATE - REGION_FRAME);
	ucontext_t *context = (ucontext_t *)(void *)frame;
	greg_t *to = context->uc_mcontext.gregs;
	struct software_bytes software = { .magic1 = MAGIC1 };
	uint64_t components;
	const uint32_t magic2 = MAGIC2;

	memset(frame, 0, REGION_REQUEST - REGION_FRAME);
	context->uc_flags = 1 | 2 | 4;   /* with the processor's state, and the stack segment */
	context->uc_stack.ss_flags = -1; /* the kernel ignores one that is not valid */
	to[REG_R8] = (greg_t)from.r8, to[REG_R9] = (greg_t)from.r9, to[REG_R10] = (greg_t)from.r10;
	to[REG_R11] = (greg_t)from.r11, to[REG_R12] = (greg_t)from.r12, to[REG_R13] = (greg_t)from.r13;
	to[REG_R14] = (greg_t)from.r14, to[REG_R15] = (greg_t)from.r15, to[REG_RDI] = (greg_t)from.rdi;
	to[REG_RSI] = (greg_t)from.rsi, to[REG_RBP] = (greg_t)from.rbp, to[REG_RBX] = (greg_t)from.rbx;
	to[REG_RDX] = (greg_t)from.rdx, to[REG_RAX] = (greg_t)from.rax, to[REG_RCX] = (greg_t)from.rcx;
	to[REG_RSP] = (greg_t)from.rsp, to[REG_RIP] = (greg_t)from.rip, to[REG_EFL] = (greg_t)from.eflags;
	to[REG_CSGSFS] = (greg_t)((from.cs & 0xffff) | (from.gs & 0xffff) << 16 | (from.fs & 0xffff) << 32 |
	                          (from.ss & 0xffff) << 48);
	memcpy(&context->uc_sigmask, &stopped->signals, sizeof(stopped->signals));
	memcpy(xstate, stopped->xstate, stopped->xstate_size);
	memcpy(&components, stopped->xstate + 464, sizeof(components)); /* that the kernel has enabled */
	components &= ~X_TILES;
	software.components = components;
	software.xstate_size = xstate_end(components);
	software.extended_size = software.xstate_size + sizeof(magic2);
	memcpy(xstate + 464, &software, sizeof(software));
	memcpy(xstate + software.xstate_size, &magic2, sizeof(magic2));
	context->uc_mcontext.fpregs = (fpregset_t)(uintptr_t)(helper->region + REGION_XSTATE);
	return REGION_XSTATE - REGION_FRAME + software.extended_size;
}

/* --- one call -------------------------------------------------------------------------------------- */

#define RED_ZONE 128

/* Where libc's code has this byte sequence; 0: nowhere. */
static uint64_t find_code(const struct target *target, const void *code, size_t size)
{
	const struct object_memory memory = { .process = target->process };
	uint64_t found = 0;

	for (size_t i = 0; !found && i < target->objects.count; i++) {
		const struct target_object *object = &target->objects.items[i];
		size_t bytes = object->end - object->start;
		char *copy = object->kind == OBJECT_LIBC && bytes < (64u << 20) ? malloc(bytes) : NULL;
		const char *at = copy && object_read(&memory, object->start, copy, bytes)
		                         ? memmem(copy, bytes, code, size)
		                         : NULL;

		if (at)
			found = object->start + (uint64_t)(at - copy);
		free(copy);
	}
	return found;
}

/* The first calls use the thread's own stack, below its red zone, as a signal would. */
struct borrowed {
	struct stopped_way way;
	uint64_t at;
	size_t size;
	unsigned char before[REGION_REQUEST - REGION_FRAME + 64];
};

static bool borrow(struct helper *helper, const struct stopped *stopped, struct borrowed *borrowed)
{
	static _Alignas(64) unsigned char frame[REGION_REQUEST - REGION_FRAME];
	const uint64_t at = (stopped->registers.rsp - RED_ZONE - sizeof(frame) - 4096) & ~63ull;

	borrowed->way = (struct stopped_way){ helper->instruction, at - 8 };
	borrowed->at = at - 8;
	helper->region = at - REGION_FRAME; /* for the frame's pointer */
	borrowed->size = fill_frame(helper, stopped, frame) + 8;
	return helper->instruction && helper->restores &&
	       read_memory(helper, borrowed->at, borrowed->before, borrowed->size) &&
	       write_memory(helper, borrowed->at, &helper->restores, sizeof(helper->restores)) &&
	       write_memory(helper, at, frame, borrowed->size - 8);
}

static bool map_region(struct helper *helper, const struct stopped *stopped, struct stopped_way way)
{
	const size_t code_size = (size_t)(attach_stub_end - attach_stub);
	long made = stopped_call(stopped, way, SYS_mmap,
	                         (uint64_t[6]){ 0, REGION_SIZE, PROT_READ | PROT_WRITE,
	                                        MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0 });

	if (made < 0 && made > -4096)
		return fail(helper, "it has no memory for the call, or may not map any");
	helper->region = (uint64_t)made;
	if (write_memory(helper, helper->region + REGION_CODE, attach_stub, code_size) &&
	    !stopped_call(stopped, way, SYS_mprotect,
	                  (uint64_t[6]){ helper->region + REGION_CODE, 4096, PROT_READ | PROT_EXEC }))
		return true;
	stopped_call(stopped, way, SYS_munmap, (uint64_t[6]){ helper->region, REGION_SIZE });
	return fail(helper,
	            "it may not map code of its own (a security module?): start it with queryprof record");
}

/* The memory of the previous call, or new memory. */
static bool make_region(struct helper *helper, const struct stopped *stopped)
{
	static struct borrowed borrowed;
	bool done;

	helper->region = helper->target->now.region;
	if (helper->region)
		return true;
	if (!borrow(helper, stopped, &borrowed))
		return fail(helper, "its threads are where no memory is for the call");
	done = map_region(helper, stopped, borrowed.way);
	helper->borrowed = &borrowed;
	return done;
}

/* The thread has another stack now, or is about to continue. */
static void give_back(struct helper *helper)
{
	if (helper->borrowed)
		write_memory(helper, helper->borrowed->at, helper->borrowed->before, helper->borrowed->size);
	helper->borrowed = NULL;
}

static bool fill_region(struct helper *helper, const struct stopped *stopped)
{
	static _Alignas(64) unsigned char frame[REGION_REQUEST - REGION_FRAME];
	struct attach_request request = *helper->request;
	struct stub_data data = {
		.fd = -1,
		.loads = !helper->target->attached,
		.dlopen = helper->target->dlopen,
		.function = helper->target->attached ? helper->target->attached : helper->function,
		.request = helper->region + REGION_REQUEST,
		.frame = helper->region + REGION_FRAME,
		.name = "queryprof-recorder",
	};

	request.region = helper->region;
	fill_frame(helper, stopped, frame);
	return write_memory(helper, helper->region + REGION_DATA, &data, sizeof(data)) &&
	       write_memory(helper, helper->region + REGION_FRAME, frame, sizeof(frame)) &&
	       write_memory(helper, helper->region + REGION_REQUEST, &request, sizeof(request));
}

/* The thread waits for this word. */
static bool give_file(const struct helper *helper, int fd)
{
	const uint64_t data = helper->region + REGION_DATA;
	const uint32_t state = STUB_HAS_FILE;
	char path[64];
	int file;
	size_t done = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)helper->target->process, fd);
	file = fd < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
	while (file >= 0 && done < helper->size) {
		ssize_t size =
			pwrite(file, (const char *)helper->file + done, helper->size - done, (off_t)done);

		if (size <= 0)
			break;
		done += (size_t)size;
	}
	if (file >= 0)
		close(file);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return write_memory(helper, data + offsetof(struct stub_data, path), path, sizeof(path)) &&
	       write_memory(helper, data + offsetof(struct stub_data, state), &state, sizeof(state)) &&
	       done == helper->size;
}

enum call_end {
	CALL_ENDED, /* the thread is stopped, and must be restored */
	CALL_LEFT,  /* the thread has returned to its place, and is stopped or runs */
	CALL_LASTS,
};

/* If the command got no processor for long, the thread may have given up waiting. */
static enum call_end stop_in_region(const struct helper *helper, struct stopped *stopped)
{
	struct user_regs_struct registers;

	if (stopped_interrupt(stopped) || stopped_registers(stopped, &registers))
		return CALL_LEFT;
	if (registers.rip - helper->region < REGION_SIZE)
		return CALL_ENDED;
	stopped->registers = registers;
	stopped->xstate_size = 0; /* there is nothing to restore */
	stopped_end(stopped);
	return CALL_LEFT;
}

static enum call_end await_call(const struct helper *helper, struct stopped *stopped, struct stub_data *data)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	bool is_given = false;
	int came;

	while ((came = stopped_poll(stopped)) == 0 && clock_ns(CLOCK_MONOTONIC) - begin < CALL_NS) {
		sched_yield();
		if (!read_memory(helper, helper->region + REGION_DATA, data, sizeof(*data)))
			continue;
		if (data->state == STUB_WANTS_FILE && !is_given) {
			is_given = true;
			give_file(helper, data->fd);
		}
		if (data->state == STUB_DONE)
			return stop_in_region(helper, stopped);
	}
	if (came == 0)
		stopped_leave(stopped); /* the thread continues when the call returns */
	/* Or a fault stopped it, in a library that has done half of its work. */
	return came > 0 ? CALL_ENDED : CALL_LASTS;
}

static bool take_result(const struct helper *helper, const struct stub_data *data)
{
	struct attach_request request;

	if (!read_memory(helper, helper->region + REGION_REQUEST, &request, sizeof(request)))
		return fail(helper, "its memory cannot be read");
	if (request.result == ATTACH_DONE)
		return true;
	if (request.result == ATTACH_REFUSED) {
		request.sentence[sizeof(request.sentence) - 1] = '\0';
		return fail(helper, request.sentence);
	}
	if (request.result == ATTACH_BUSY)
		return fail(helper, "its threads are in queryprof's code");
	if (data->loads && data->fd < 0)
		return fail(helper, "it may not make a memfd, which has the library (a security module, or a "
		                    "limit of descriptors)");
	return fail(helper,
	            data->loads && !data->handle
	                    ? "its dlopen() has refused the library: it has no /proc, or may not map code"
	                    : "the call has not returned");
}

/* The thread is stopped, and holds no lock. False: the call was not made; `sentence` has the reason. */
static bool call(struct helper *helper, struct stopped *stopped)
{
	struct user_regs_struct registers = stopped->registers;
	struct stub_data data = { 0 };
	enum call_end end;
	bool is_done;

	if (stopped_keep(stopped) || !make_region(helper, stopped) || !fill_region(helper, stopped)) {
		if (!helper->injection->sentence[0])
			fail(helper, "its memory cannot be written");
		give_back(helper);
		stopped_end(stopped);
		return false;
	}
	registers.rip = helper->region + REGION_CODE;
	registers.rsp = helper->region + REGION_SIZE - 256;
	registers.rbx = helper->region + REGION_DATA;
	registers.orig_rax = (unsigned long long)-1;
	registers.eflags &= ~0x500ull; /* neither steps nor backwards */
	/* Not earlier: until now the thread returns through the saved state, if this process is killed. */
	end = stopped_run(stopped, &registers) ? CALL_LASTS : await_call(helper, stopped, &data);
	give_back(helper);
	if (end == CALL_LASTS)
		return fail(helper, "the call did not return in time; it continues when it can");
	is_done = take_result(helper, &data);
	if (end == CALL_ENDED)
		stopped_end(stopped);
	return is_done;
}

/* --- the search for a thread ---------------------------------------------------------------------------- */

enum tried { TRIED_NOT, TRIED_DONE, TRIED_FAILED };

static bool may_be_again(const char *sentence)
{
	return strncmp(sentence, "its threads are", 15) == 0;
}

/* looks: only what costs time at the first look, while the thread continues to run. */
static enum tried try_thread(struct helper *helper, pid_t thread, bool looks)
{
	static struct stopped stopped;
	const char state = process_state(helper->target->process, thread);
	struct injection *injection = helper->injection;
	const char *refusal;
	uint64_t begin;
	int error;

	if (!strchr("RS", state))
		return TRIED_NOT;
	error = stopped_begin(&stopped, helper->target->process, thread);
	if (error == ESRCH)
		return TRIED_NOT;
	if (error) {
		if (error == EPERM)
			(void)target_refuse(helper->target, injection->sentence);
		else
			snprintf(injection->sentence, sizeof(injection->sentence),
			         error == EBUSY
			                 ? "it is stopped by a signal: let it continue first (kill -CONT)"
			                 : "a thread of it cannot be stopped: %s",
			         strerror(error));
		return TRIED_FAILED;
	}
	begin = clock_ns(CLOCK_MONOTONIC);
	injection->tries++;
	refusal = frames_refuse_position(helper->frames, stopped.registers.rip);
	if (looks) {
		const struct user_regs_struct registers = stopped.registers;

		stopped_end(&stopped);
		injection->looked_ns += clock_ns(CLOCK_MONOTONIC) - begin;
		frames_refuse(helper->frames, thread, &registers);
		return TRIED_NOT;
	}
	if (!refusal && !helper->target->now.region &&
	    !target_is_thread_stack(helper->target->process, stopped.registers.rsp,
	                            stopped.registers.fs_base))
		refusal = "its threads are on stacks of coroutines or signal handlers, which may be small";
	if (!refusal)
		refusal = frames_refuse(helper->frames, thread, &stopped.registers);
	if (refusal) {
		stopped_end(&stopped);
		injection->looked_ns += clock_ns(CLOCK_MONOTONIC) - begin;
		fail(helper, refusal);
		return TRIED_NOT;
	}
	injection->sentence[0] = '\0';
	injection->is_done = call(helper, &stopped);
	injection->stopped_ns += clock_ns(CLOCK_MONOTONIC) - begin;
	return injection->is_done ? TRIED_DONE : may_be_again(injection->sentence) ? TRIED_NOT : TRIED_FAILED;
}

static enum tried try_threads(struct helper *helper, bool looks)
{
	DIR *threads = process_folder(helper->target->process, "task");
	enum tried tried;

	if (!threads) {
		fail(helper, "it has ended");
		return TRIED_FAILED;
	}
	for (pid_t thread; (thread = process_next(threads)) >= 0;)
		if ((tried = try_thread(helper, thread, looks)) != TRIED_NOT) {
			closedir(threads);
			return tried;
		}
	return TRIED_NOT;
}

/* The part of the file that the loader maps. */
static bool open_library(struct helper *helper)
{
	struct stat status;
	const Elf64_Ehdr *head = helper->file = file_map(helper->library, &status);
	struct object_memory memory = { .file = head, .size = head ? (size_t)status.st_size : 0 };
	const Elf64_Phdr *segments = head ? (const Elf64_Phdr *)((const char *)head + head->e_phoff) : NULL;
	struct symbols symbols;

	for (int i = 0; head && i < head->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_offset + segments[i].p_filesz > helper->size)
			helper->size = segments[i].p_offset + segments[i].p_filesz;
	if (head && symbols_read(&symbols, &memory, 0)) {
		helper->function = symbols_find(&symbols, "queryprof_attached");
		symbols_free(&symbols);
	}
	return helper->function || fail(helper, "libqueryprof-recorder.so cannot be read");
}

static void help(void *context)
{
	struct helper *helper = context;
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	enum tried tried;

	helper->frames = frames_open(helper->target);
	if (!helper->frames) {
		fail(helper, "stacks cannot be read without libdw: install elfutils' library (libdw1)");
		return;
	}
	if (!helper->target->attached && !open_library(helper))
		return;
	helper->instruction = find_code(helper->target, "\x0f\x05\xc3", 3);
	helper->restores = find_code(helper->target, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
	tried = try_threads(helper, true);
	while (tried == TRIED_NOT && clock_ns(CLOCK_MONOTONIC) - begin < SEARCH_NS) {
		tried = try_threads(helper, false);
		if (tried == TRIED_NOT)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
	if (tried == TRIED_NOT && !helper->injection->sentence[0])
		fail(helper, "none of its threads can be stopped now");
}

bool injection_run(struct injection *injection, const struct target *target, const char *library,
                   const struct attach_request *request)
{
	struct helper helper = { .injection = helper_memory(sizeof(*injection)),
		                 .target = target,
		                 .library = library,
		                 .request = request };
	bool done = helper.injection && helper_run(help, &helper);

	*injection = done ? *helper.injection : (struct injection){ 0 };
	if (!done)
		snprintf(injection->sentence, sizeof(injection->sentence), "%s",
		         errno ? strerror(errno)
		               : "the process of this command that stops threads has ended");
	if (helper.injection)
		munmap(helper.injection, sizeof(*injection));
	return injection->is_done;
}
