/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/attach/symbols.h"

struct walk {
	const struct libdw *libdw;
	Dwfl *dwfl;
	pid_t process, thread;
	struct walk_start start;
	walk_visit *visit;
	void *context;
};

static struct walk *opened; /* libdw passes no context to find_elf() */

static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file,
                    Elf **elf)
{
	char path[PATH_MAX];
	int fd;

	if (*name != '/')
		return opened->libdw->dwfl_linux_proc_find_elf(module, data, name, base, file, elf);
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)opened->process, name);
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
	struct walk *walk = context;

	(void)dwfl;
	if (*argument)
		return 0;
	*argument = walk;
	return walk->thread;
}

static bool get_thread(Dwfl *dwfl, pid_t thread, void *context, void **argument)
{
	(void)dwfl, (void)thread;
	*argument = context;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *context)
{
	const struct walk *walk = context;
	const uint64_t past = address - walk->start.at;

	(void)dwfl;
	if (!walk->start.copy)
		return object_read(&(struct object_memory){ .process = walk->process }, address, word,
		                   sizeof(*word));
	if (past >= walk->start.size || walk->start.size - past < sizeof(*word))
		return false;
	memcpy(word, walk->start.copy + past, sizeof(*word));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct walk *walk = context;
	const struct user_regs_struct *from = walk->start.registers;
	/* In DWARF's order. */
	const Dwarf_Word values[] = { from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
		                      from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
		                      from->r12, from->r13, from->r14, from->r15, from->rip };

	return walk->libdw->dwfl_thread_state_registers(thread, 0, sizeof(values) / sizeof(values[0]),
	                                                values);
}

static const Dwfl_Callbacks callbacks = { .find_elf = find_elf, .find_debuginfo = find_no_debuginfo };
static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

struct walk *walk_open(pid_t process)
{
	const struct libdw *libdw = libdw_load();
	struct walk *walk = libdw ? calloc(1, sizeof(*walk)) : NULL;

	if (!walk)
		return NULL;
	walk->libdw = libdw;
	walk->process = process;
	opened = walk;
	walk->dwfl = libdw->dwfl_begin(&callbacks);
	if (!walk->dwfl || libdw->dwfl_linux_proc_report(walk->dwfl, process) ||
	    libdw->dwfl_report_end(walk->dwfl, NULL, NULL) ||
	    !libdw->dwfl_attach_state(walk->dwfl, NULL, process, &thread_callbacks, walk)) {
		walk_close(walk);
		return NULL;
	}
	return walk;
}

void walk_close(struct walk *walk)
{
	if (walk && walk->dwfl)
		walk->libdw->dwfl_end(walk->dwfl);
	free(walk);
}

static int visit_frame(Dwfl_Frame *frame, void *context)
{
	struct walk *walk = context;
	bool is_activation;
	Dwarf_Addr position;

	if (!walk->libdw->dwfl_frame_pc(frame, &position, &is_activation))
		return DWARF_CB_ABORT;
	/* A call that is the last instruction of its function returns to the next one. */
	return walk->visit(walk->context, frame, is_activation ? position : position - 1) ? DWARF_CB_OK
	                                                                                  : DWARF_CB_ABORT;
}

bool walk_frames(struct walk *walk, pid_t thread, const struct walk_start *start, walk_visit *visit,
                 void *context)
{
	walk->thread = thread;
	walk->start = *start;
	walk->visit = visit;
	walk->context = context;
	return walk->libdw->dwfl_getthread_frames(walk->dwfl, thread, visit_frame, walk) == 0;
}

bool walk_register(const struct walk *walk, Dwfl_Frame *frame, unsigned number, uint64_t *value)
{
	Dwarf_Word word;

	if (!walk->libdw->dwfl_frame_reg || walk->libdw->dwfl_frame_reg(frame, number, &word) != 0)
		return false;
	*value = word;
	return true;
}
