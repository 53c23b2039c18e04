/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/static/opening.h"

#include <sqlite3ext.h>
#include <stddef.h>
#include <string.h>

#include "sqlite/static/copies.h"
#include "sqlite/static/patch.h"
#include "sqlite/static/stub.h"

#define OPENINGS_MAX 8

#define INDEX(routine) (offsetof(struct sqlite3_api_routines, routine) / sizeof(uintptr_t))

static const struct {
	const char *name;
	size_t index;
} functions[] = {
	{ "sqlite3_open_v2", INDEX(open_v2) },
	{ "sqlite3_open", INDEX(open) },
	{ "sqlite3_open16", INDEX(open16) },
	{ "sqlite3_auto_extension", INDEX(auto_extension) },
};
/* And what the first two are only a way to: link-time optimisation lets the program call that. */
#define FUNCTIONS (sizeof(functions) / sizeof(*functions) + 1)

static struct opening {
	const uintptr_t *routines; /* atomic; NULL: free */
	bool is_done;              /* atomic */
	bool is_of_program, is_reported;
	struct patch_area area;
	void *real[FUNCTIONS];
	struct patch_entry entries[FUNCTIONS];
} openings[OPENINGS_MAX];

static void (*on_first_open)(const void *routines);

/* Both are named by the assembly. */
void queryprof_first_open(void) __attribute__((visibility("hidden")));
void queryprof_before_open(uintptr_t second) __attribute__((visibility("hidden"), used));

/* `second` is the part of the stub that continues. */
void queryprof_before_open(uintptr_t second)
{
	for (size_t i = 0; i < OPENINGS_MAX; i++) {
		struct opening *opening = &openings[i];
		/* Acquire: the rest of it. */
		const uintptr_t *routines = __atomic_load_n(&opening->routines, __ATOMIC_ACQUIRE);

		if (!routines || second - opening->area.start >= opening->area.end - opening->area.start)
			continue;
		if (!__atomic_load_n(&opening->is_done, __ATOMIC_ACQUIRE))
			on_first_open(routines);
		__atomic_store_n(&opening->is_done, true, __ATOMIC_RELEASE);
	}
}

/* The wrapper of all: whatever the function's arguments are, it is entered with them. */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl queryprof_first_open\n"
        ".hidden queryprof_first_open\n"
        ".type queryprof_first_open, @function\n"
        "queryprof_first_open:\n"
        "	.cfi_startproc\n"
        "	endbr64\n"
        "	push %rdi\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	push %rsi\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	push %rdx\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	push %rcx\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	push %r11\n"
        "	.cfi_adjust_cfa_offset 8\n"
        "	mov %r11, %rdi\n"
        "	call queryprof_before_open\n"
        "	pop %r11\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	pop %rcx\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	pop %rdx\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	pop %rsi\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	pop %rdi\n"
        "	.cfi_adjust_cfa_offset -8\n"
        "	jmp *%r11\n"
        "	.cfi_endproc\n"
        ".size queryprof_first_open, . - queryprof_first_open\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl queryprof_first_open\n"
        ".hidden queryprof_first_open\n"
        ".type queryprof_first_open, %function\n"
        "queryprof_first_open:\n"
        "	.cfi_startproc\n"
        "	hint #34\n" /* bti c */
        "	stp x29, x30, [sp, #-64]!\n"
        "	.cfi_def_cfa_offset 64\n"
        "	.cfi_offset 29, -64\n"
        "	.cfi_offset 30, -56\n"
        "	stp x0, x1, [sp, #16]\n"
        "	stp x2, x3, [sp, #32]\n"
        "	str x17, [sp, #48]\n"
        "	mov x0, x17\n"
        "	bl queryprof_before_open\n"
        "	ldr x17, [sp, #48]\n"
        "	ldp x2, x3, [sp, #32]\n"
        "	ldp x0, x1, [sp, #16]\n"
        "	ldp x29, x30, [sp], #64\n"
        "	.cfi_restore 29\n"
        "	.cfi_restore 30\n"
        "	.cfi_def_cfa_offset 0\n"
        "	br x17\n"
        "	.cfi_endproc\n"
        ".size queryprof_first_open, . - queryprof_first_open\n"
        ".popsection\n");
#else
#error "queryprof supports x86-64 and aarch64"
#endif

/* --- which copies there are ------------------------------------------------------------------ */

/* Objects are unmapped only when nothing of them runs, so no thread is in their stubs. */
static void forget(struct opening *opening)
{
	__atomic_store_n(&opening->routines, NULL, __ATOMIC_RELAXED);
	patch_free_area(&opening->area);
}

/* The copy that was patched, NULL: none. In the place of one that was unmapped there may be
 * another, or the same again, with its own code. */
static struct opening *find_known(const struct static_copy *copy)
{
	for (size_t i = 0; i < OPENINGS_MAX; i++) {
		if (openings[i].routines != copy->table.routines)
			continue;
		if (patch_leads_to(&openings[i].area, openings[i].entries[0].function))
			return &openings[i];
		forget(&openings[i]);
	}
	return NULL;
}

static struct opening *find_free(void)
{
	for (size_t i = 0; i < OPENINGS_MAX; i++)
		if (!openings[i].routines)
			return &openings[i];
	return NULL;
}

static uintptr_t common_function(const struct static_copy *copy)
{
	uintptr_t one = stub_only_call(&copy->object.code, copy->table.routines[INDEX(open)], false);

	return one == stub_only_call(&copy->object.code, copy->table.routines[INDEX(open_v2)], false) ? one
	                                                                                              : 0;
}

static const char *watch(struct opening *opening, const struct static_copy *copy)
{
	const char *why;

	memset(opening, 0, sizeof(*opening));
	for (size_t i = 0; i < FUNCTIONS; i++)
		opening->entries[i] = (struct patch_entry){
			.name = i + 1 < FUNCTIONS ? functions[i].name : "openDatabase",
			.function = i + 1 < FUNCTIONS ? copy->table.routines[functions[i].index]
			                              : common_function(copy),
			.wrapper = (const void *)queryprof_first_open,
			.real = &opening->real[i],
		};
	why = patch_functions(&copy->object, opening->entries, FUNCTIONS, NULL, &opening->area);
	/* Release: with queryprof_before_open(). */
	if (!why)
		__atomic_store_n(&opening->routines, copy->table.routines, __ATOMIC_RELEASE);
	return why;
}

static void (*report_refused)(const char *path, const char *why);

static void no_table(const char *path, enum static_found found)
{
	report_refused(path,
	               found == STATIC_NO_TABLE
	                       ? "the SQLite inside it was built with SQLITE_OMIT_LOAD_EXTENSION, so it "
	                         "lacks the table that queryprof needs to find its functions: build it "
	                         "without that option, or with a shared library"
	                       : "the SQLite inside it has an unknown table of functions, or one that leads "
	                         "to another library with the same names");
}

static void see(const struct static_copy *copy)
{
	struct opening *opening = find_known(copy);
	const char *why;

	if (!opening) {
		opening = find_free();
		why = opening ? watch(opening, copy) : "there are too many copies of SQLite in one process";
		if (why) {
			report_refused(copy->path, why);
			return;
		}
	}
	opening->is_reported = true;
	opening->is_of_program = copy->is_of_program;
}

void opening_check(void (*first_open)(const void *routines),
                   void (*refused)(const char *path, const char *why))
{
	static struct copies_search search;
	static struct static_copy copies[STATIC_TABLES_MAX];
	unsigned long long gone = search.gone;
	size_t count;

	on_first_open = first_open;
	report_refused = refused;
	for (size_t i = 0; i < OPENINGS_MAX; i++)
		openings[i].is_reported = openings[i].is_of_program;
	while ((count = copies_find(&search, copies, STATIC_TABLES_MAX, no_table)))
		for (size_t i = 0; i < count; i++)
			see(&copies[i]);
	/* All were reported again, except unmapped ones. */
	for (size_t i = 0; search.gone != gone && i < OPENINGS_MAX; i++)
		if (openings[i].routines && !openings[i].is_reported)
			forget(&openings[i]);
}
