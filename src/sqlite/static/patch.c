/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/patch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sqlite/static/stub.h"
#include "sqlite/static/unwinding.h"

static uintptr_t page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

/* --- memory near the code --------------------------------------------------------------- */

#define STEP ((uintptr_t)1 << 20)
#define STEP_BELOW_FIXED ((uintptr_t)1 << 17) /* few addresses are below such a program */
#define LOWEST ((uintptr_t)1 << 16)
#define HIGHEST ((uintptr_t)1 << 47)

/* A program at a fixed address is followed by its growing heap. */
#define AFTER ((uintptr_t)64 << 20)

static uintptr_t map_at(uintptr_t address, size_t size)
{
	void *memory;

	if (address < LOWEST || address > HIGHEST - size)
		return 0;
	memory = mmap((void *)address, size, PROT_READ | PROT_EXEC,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		return 0;
	if ((uintptr_t)memory == address)
		return address;
	munmap(memory, size); /* an old kernel treats the address as a hint */
	return 0;
}

/* Below the object first, from near to far; every byte of the code must be within reach. */
static uintptr_t map_near(const struct static_object *object, size_t size)
{
	const uintptr_t page = page_size(), step = object->is_fixed ? STEP_BELOW_FIXED : STEP;
	const uintptr_t below = object->image.start & ~(page - 1);
	const uintptr_t above = (object->image.end + AFTER) & ~(page - 1);
	uintptr_t found = 0;

	for (uintptr_t away = step; !found && away < below && object->code.end - (below - away) < stub_reach;
	     away += step)
		found = map_at(below - away, size);
	for (uintptr_t away = 0; !found && above + away + size - object->code.start < stub_reach;
	     away += STEP)
		found = map_at(above + away, size);
	return found;
}

/* --- writing ------------------------------------------------------------------------------ */

static bool write_code(int memory, uintptr_t address, const void *bytes, size_t size)
{
	if (!size)
		return true;
	if (pwrite(memory, bytes, size, (off_t)address) != (ssize_t)size ||
	    memcmp((const void *)address, bytes, size))
		return false;
	__builtin___clear_cache((char *)address, (char *)address + size);
	return true;
}

/* --- all entries ------------------------------------------------------------------------------ */

/* The patch under construction, too large for a stack. The preload has no memory except mappings,
 * because the host may have replaced malloc(). */
struct work {
	struct placed_stub stubs[PATCH_ENTRIES_MAX];
	struct patch_entry *of[PATCH_ENTRIES_MAX];
	uint8_t before[PATCH_ENTRIES_MAX][STUB_JUMP_MAX];
	size_t count;
	int memory;          /* /proc/self/mem */
	uintptr_t next, end; /* of the room for stubs */
	uint8_t unwinding[PATCH_ENTRIES_MAX * 128];
};

#define UNWINDING_BYTES sizeof(((struct work *)NULL)->unwinding)

static bool is_taken(const struct work *work, const struct stub *stub)
{
	for (size_t i = 0; i < work->count; i++)
		if (work->stubs[i].stub.at == stub->at)
			return true;
	return false;
}

static void make_one(struct work *work, const struct static_object *object, struct patch_entry *entry)
{
	struct placed_stub *placed = &work->stubs[work->count];

	*entry->real = (void *)entry->function;
	if (!entry->function) {
		entry->refused = "this SQLite has none";
		return;
	}
	placed->address = work->next;
	entry->refused =
		stub_make(&placed->stub, &object->code, entry->function, placed->address, entry->wrapper);
	if (!entry->refused && is_taken(work, &placed->stub))
		entry->refused = "two names of the interface have this function";
	if (!entry->refused && work->end - work->next < placed->stub.size)
		entry->refused = "there is no space for its stub";
	if (entry->refused)
		return;
	work->next += (placed->stub.size + STUB_ALIGN - 1) & ~(uintptr_t)(STUB_ALIGN - 1);
	work->of[work->count++] = entry;
}

static const char *write_stubs(struct work *work, struct patch_area *area)
{
	size_t size, header = unwinding_write(work->unwinding, sizeof(work->unwinding), area->unwinding,
	                                      work->stubs, work->count, &size);

	if (!header)
		return "there is no space for its stubs' unwind information";
	area->unwinding_end = area->unwinding + size;
	if (!write_code(work->memory, area->unwinding, work->unwinding, size))
		return "/proc/self/mem cannot be written";
	for (size_t i = 0; i < work->count; i++)
		if (!write_code(work->memory, work->stubs[i].address, work->stubs[i].stub.code,
		                work->stubs[i].stub.size))
			return "/proc/self/mem cannot be written";
	return NULL;
}

/* All other threads may be stopped here. */
static const char *write_jumps(void *context)
{
	struct work *work = context;
	size_t i;

	for (i = 0; i < work->count; i++) {
		const struct stub *stub = &work->stubs[i].stub;

		*work->of[i]->real = (void *)(work->stubs[i].address + stub->second);
		memcpy(work->before[i], (const void *)stub->at, stub->jump_size);
	}
	/* In reverse order: without the first entry nothing is seen. */
	for (i = work->count; i-- > 0;)
		if (!write_code(work->memory, work->stubs[i].stub.at, work->stubs[i].stub.jump,
		                work->stubs[i].stub.jump_size))
			break;
	if (i == SIZE_MAX)
		return NULL;
	for (i = 0; i < work->count; i++)
		write_code(work->memory, work->stubs[i].stub.at, work->before[i],
		           work->stubs[i].stub.jump_size);
	return "its code cannot be written";
}

static const char *write_at(patch_moment *moment, struct work *work)
{
	struct static_range functions[PATCH_ENTRIES_MAX];

	if (!moment)
		return write_jumps(work);
	/* A thread that is about to execute the first instruction will execute the jump. */
	for (size_t i = 0; i < work->count; i++)
		functions[i] = (struct static_range){ work->stubs[i].stub.at + 1, work->stubs[i].stub.end };
	return moment(functions, work->count, write_jumps, work);
}

static const char *patch(struct work *work, const struct static_object *object, struct patch_entry *entries,
                         size_t count, patch_moment *moment, struct patch_area *area)
{
	const char *refused;

	work->next = area->start;
	work->end = area->code_end;
	for (size_t i = 0; i < count; i++) {
		make_one(work, object, &entries[i]);
		if (i == 0 && entries[i].refused)
			return entries[i].refused;
	}
	refused = write_stubs(work, area);
	return refused ? refused : write_at(moment, work);
}

const char *patch_functions(const struct static_object *object, struct patch_entry *entries, size_t count,
                            patch_moment *moment, struct patch_area *area)
{
	const uintptr_t page = page_size();
	const size_t code = (count * STUB_BYTES_MAX / 2 + page - 1) & ~(page - 1);
	const size_t unwinding = (UNWINDING_BYTES + page - 1) & ~(page - 1);
	struct work *work =
		mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	const char *refused = NULL;

	*area = (struct patch_area){ 0 };
	if (count > PATCH_ENTRIES_MAX || work == MAP_FAILED)
		refused = "out of memory";
	else if (memory < 0)
		refused = "/proc/self/mem cannot be opened";
	else if (!(area->start = map_near(object, code + unwinding)))
		refused = "there is no space near its code";
	if (!refused) {
		area->end = area->start + code + unwinding;
		area->code_end = area->unwinding = area->start + code;
		mprotect((void *)area->unwinding, unwinding, PROT_READ);
		work->memory = memory;
		refused = patch(work, object, entries, count, moment, area);
	}
	if (refused) {
		for (size_t i = 0; i < count; i++) {
			*entries[i].real = (void *)entries[i].function;
			if (!entries[i].refused)
				entries[i].refused = refused;
		}
		patch_free_area(area);
	}
	if (memory >= 0)
		close(memory);
	if (work != MAP_FAILED)
		munmap(work, sizeof(*work));
	return refused;
}

bool patch_leads_to(const struct patch_area *area, uintptr_t function)
{
	return stub_jump_target(function) - area->start < area->end - area->start;
}

void patch_free_area(struct patch_area *area)
{
	if (area->start)
		munmap((void *)area->start, area->end - area->start);
	*area = (struct patch_area){ 0 };
}
