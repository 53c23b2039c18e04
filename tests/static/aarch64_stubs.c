/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and runs stubs of aarch64. Functions that begin with each kind of instruction return the same through
 * their stubs as without; other functions are refused. Also tests which values the search for SQLite reads
 * from compiled functions.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef PROT_BTI
#define PROT_BTI 0x10
#endif

#include "sqlite/static/constant.h"
#include "sqlite/static/find.h"
#include "sqlite/static/stub.h"

#define FUNCTION(name, ...)                                                                                  \
	long name(long a, long b);                                                                           \
	__asm__(".text\n.p2align 4\n.globl " #name "\n" #name ":\n" __VA_ARGS__ "\n")

FUNCTION(pushes,
         "stp x29,x30,[sp,#-32]!; mov x29,sp; str x0,[sp,#16]; bl add_seven; ldr x1,[sp,#16]; add x0,x0,x1; "
         "ldp x29,x30,[sp],#32; ret\nadd_seven: add x0,x1,#7; ret");
FUNCTION(landing, "bti c; sub sp,sp,#16; str x0,[sp]; ldr x2,[sp]; add sp,sp,#16; add x0,x2,x1; ret");
FUNCTION(large, "sub sp,sp,#1,lsl #12; str x0,[sp]; ldr x2,[sp]; add sp,sp,#1,lsl #12; sub x0,x2,x1; ret");
FUNCTION(zero, "cbz x0,1f; add x0,x0,x1; ret\n1: mov x0,#99; ret");
FUNCTION(not_zero, "cbnz w1,1f; mov x0,#5; ret\n1: mul x0,x0,x1; ret");
FUNCTION(bit, "tbz x0,#2,1f; mov x0,#1; ret\n1: mov x0,#2; ret");
FUNCTION(high_bit, "tbnz x1,#33,1f; mov x0,#1; ret\n1: mov x0,#2; ret");
FUNCTION(jumps, "b 1f; .rept 40; nop; .endr\n1: add x0,x0,#3; ret");
FUNCTION(page, "adrp x2,number; ldr x2,[x2,#:lo12:number]; add x0,x0,x2; ret");
FUNCTION(near_place, "adr x2,1f; ldr w2,[x2]; add x0,x0,x2; ret\n1: .word 77");
FUNCTION(moves, "mov x2,x0; add x0,x2,x1,lsl #1; ret");
FUNCTION(compares, "cmp x0,x1; csel x0,x0,x1,gt; ret");
FUNCTION(condition, "b.al 1f; nop\n1: add x0,x0,#9; ret");
FUNCTION(loads, "ldr x2,[sp,#8]; add x0,x0,x1; ret");
FUNCTION(signs, "paciasp; stp x29,x30,[sp,#-32]!; mov x29,sp; str x0,[sp,#16]; bl add_seven; ldr "
                "x1,[sp,#16]; add x0,x0,x1; "
                "ldp x29,x30,[sp],#32; retaa");
FUNCTION(lands_and_signs, "bti c; paciasp; sub sp,sp,#16; add x0,x0,x1; add sp,sp,#16; autiasp; ret");
/* These functions are refused. */
FUNCTION(signs_only, "paciasp; autiasp; ret");
FUNCTION(signs_otherwise, "pacibsp; stp x29,x30,[sp,#-16]!; ldp x29,x30,[sp],#16; autibsp; ret");
FUNCTION(moves_stack, "sub sp,sp,x9; add sp,sp,x9; ret");
FUNCTION(adds_stack, "add sp,sp,#16; sub sp,sp,#16; ret");
FUNCTION(frame, "mov x29,x0; ret");
FUNCTION(returns, "ret");
/* The search reads it as a function that returns &number + 32. */
FUNCTION(named_near, "adrp x0,number; add x0,x0,:lo12:number; add x0,x0,#32; ret");
FUNCTION(not_near, "adrp x0,number; add x0,x0,:lo12:number; add x0,x1,#32; ret");
__asm__(".data\n.p2align 3\nnumber: .quad 123456\n.text");

typedef long function(long, long);

static const struct {
	const char *name;
	function *function;
	bool is_refused;
} cases[] = {
#define CASE(name, refused)                                                                                  \
	{                                                                                                    \
#name, name, refused                                                                         \
	}
	CASE(pushes, false),     CASE(landing, false),
	CASE(large, false),      CASE(zero, false),
	CASE(not_zero, false),   CASE(bit, false),
	CASE(high_bit, false),   CASE(jumps, false),
	CASE(page, false),       CASE(near_place, false),
	CASE(moves, false),      CASE(compares, false),
	CASE(condition, false),  CASE(loads, false),
	CASE(signs, false),      CASE(lands_and_signs, false),
	CASE(signs_only, true),  CASE(signs_otherwise, true),
	CASE(moves_stack, true), CASE(adds_stack, true),
	CASE(frame, true),       CASE(returns, true),
};

static function *real;
static int calls;

static long wrapper(long a, long b)
{
	calls++;
	return real(a, b);
}

static const long arguments[][2] = { { 0, 0 }, { 5, 3 }, { -4, 1l << 33 }, { 8, -1 } };

static int try(size_t i, char *room)
{
	const uintptr_t entry = (uintptr_t)cases[i].function, page = entry & ~4095ul;
	const struct static_range code = { page - (1 << 20), page + (1 << 20) };
	const char *why;
	const uint32_t first = *(const uint32_t *)entry;
	const bool lands = first == 0xd503245fu || first == 0xd503233fu; /* bti c, paciasp */
	/* In guarded pages, a call through a pointer faults unless it hits a landing pad. */
	const int guarded = PROT_READ | PROT_EXEC | (lands ? PROT_BTI : 0);
	struct stub stub;
	long expected[4];
	int wrong = 0;

	why = stub_make(&stub, &code, entry, (uintptr_t)room, (const void *)wrapper);
	printf("%-12s %s\n", cases[i].name, why ? why : "stub");
	if (cases[i].is_refused || why)
		return cases[i].is_refused != (why != NULL);
	for (int a = 0; a < 4; a++)
		expected[a] = cases[i].function(arguments[a][0], arguments[a][1]);
	mprotect(room, 4096, PROT_READ | PROT_WRITE);
	memcpy(room, stub.code, stub.size);
	mprotect(room, 4096, guarded);
	/* This code runs in the same page, so the page stays executable. */
	mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy((void *)stub.at, stub.jump, stub.jump_size);
	mprotect((void *)page, 8192, guarded);
	__builtin___clear_cache(room, room + 4096);
	__builtin___clear_cache((char *)page, (char *)page + 8192);
	real = (function *)(room + stub.second);
	calls = 0;
	for (int a = 0; a < 4; a++)
		wrong += cases[i].function(arguments[a][0], arguments[a][1]) != expected[a];
	if (stub_jump_target(entry) != (uintptr_t)room || calls != 4)
		wrong++;
	mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
	if (wrong)
		printf("%s: WRONG, %d calls seen\n", cases[i].name, calls);
	return wrong;
}

static const char name[] = "3.40.1";
extern const uintptr_t number; /* extern, so that the compiler treats it like a table of another object */
typedef int called(void *, void *, const void *);

__attribute__((noinline)) static int return_number(void)
{
	return 3040001;
}

__attribute__((noinline)) static const char *return_name(void)
{
	return name;
}

__attribute__((noinline)) static int pass_table(called *call, void *value)
{
	return call(value, &value, &number) + 1;
}

static int look(void *db, void *errors, const void *passed)
{
	return db && errors && passed == &number ? return_number() == 3040001 && return_name() == name : 0;
}

static int read_constants(void)
{
	const uintptr_t returned = (uintptr_t)return_number, text = (uintptr_t)return_name;
	const uintptr_t passes = (uintptr_t)pass_table, end = passes + 64;
	const struct static_object object = { .code = { (passes & ~4095ul) - (1 << 20),
		                                        passes + (1 << 20) } };
	uintptr_t at = constant_next_passed(passes, end);
	int wrong = pass_table(look, (void *)name) != 2;

	wrong += constant_returned(&object, returned) != 3040001;
	wrong += constant_returned(&object, text) != 0;
	wrong += constant_address_returned(&object, text) != (uintptr_t)name;
	wrong += constant_address_returned(&object, (uintptr_t)named_near) != (uintptr_t)&number + 32;
	wrong += constant_address_returned(&object, (uintptr_t)not_near) != 0;
	wrong += at == end || constant_named_at(at) != (uintptr_t)&number;
	printf("constants: %d wrong\n", wrong);
	return wrong;
}

int main(void)
{
	int wrong = read_constants();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		/* Each case has a page of its own, near the program. */
		char *room = mmap((void *)(((uintptr_t)main & ~4095ul) + (64ul << 20) + i * 4096), 4096,
		                  PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		wrong += try(i, room);
	}
	printf("%d wrong\n", wrong);
	return wrong != 0;
}
