/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jumps only go forward, so every path through the program ends. Paths that an unknown value opens are kept
 * on a stack, and walked one after the other.
 */
#include "hook/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Older headers do not know them. */
#ifndef SECCOMP_RET_ACTION_FULL
#define SECCOMP_RET_ACTION_FULL 0xffff0000u
#endif
#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000u
#endif
#ifndef SECCOMP_RET_LOG
#define SECCOMP_RET_LOG 0x7ffc0000u
#endif

#define WAYS_MAX 64
#define STEPS_MAX 200000

struct value {
	uint32_t number;
	bool is_known;
};

struct path {
	size_t at;
	struct value a, x, memory[BPF_MEMWORDS];
};

static struct value known(uint32_t number)
{
	return (struct value){ .number = number, .is_known = true };
}

static struct value load(const struct seccomp_call *call, uint32_t offset)
{
	const uint32_t first = offsetof(struct seccomp_data, args);
	unsigned argument;
	uint32_t word;

	if (offset == offsetof(struct seccomp_data, nr))
		return known((uint32_t)call->number);
	if (offset == offsetof(struct seccomp_data, arch))
		return known(ARCHITECTURE);
	if (offset < first || offset > sizeof(struct seccomp_data) - sizeof(word))
		return (struct value){ 0 }; /* the address of the call */
	argument = (offset - first) / sizeof(*call->arguments);
	if (!(call->known >> argument & 1))
		return (struct value){ 0 };
	memcpy(&word, (const char *)call->arguments + (offset - first), sizeof(word));
	return known(word);
}

static struct value calculate(uint16_t operation, struct value a, struct value b)
{
	if (operation == BPF_NEG)
		b = known(0);
	if (!a.is_known || !b.is_known)
		return (struct value){ 0 };
	switch (operation) {
	case BPF_ADD: return known(a.number + b.number);
	case BPF_SUB: return known(a.number - b.number);
	case BPF_MUL: return known(a.number * b.number);
	case BPF_DIV: return known(a.number / b.number); /* by 0: see walk_path() */
	case BPF_AND: return known(a.number & b.number);
	case BPF_OR: return known(a.number | b.number);
	case BPF_XOR: return known(a.number ^ b.number);
	case BPF_LSH: return known(a.number << (b.number & 31));
	case BPF_RSH: return known(a.number >> (b.number & 31));
	case BPF_NEG: return known(-a.number);
	default: return (struct value){ 0 };
	}
}

static bool is_met(uint16_t condition, uint32_t a, uint32_t b)
{
	switch (condition) {
	case BPF_JEQ: return a == b;
	case BPF_JGT: return a > b;
	case BPF_JGE: return a >= b;
	default: return (a & b) != 0; /* BPF_JSET */
	}
}

/* The kernel treats an unknown action as the hardest. */
static bool is_punishment(const struct seccomp_call *call, uint32_t answer)
{
	switch (answer & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG: return false;
	case SECCOMP_RET_ERRNO:
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_USER_NOTIF: return call->must_succeed;
	default: return true;
	}
}

struct walk {
	const struct sock_filter *program;
	size_t length;
	const struct seccomp_call *call;
	struct path paths[WAYS_MAX];
	size_t count;
	unsigned steps;
};

/* False: there are too many paths. */
static bool jump(struct walk *walk, struct path *path, const struct sock_filter *code)
{
	struct value b = BPF_SRC(code->code) == BPF_X ? path->x : known(code->k);

	if (BPF_OP(code->code) == BPF_JA) {
		path->at += code->k;
		return true;
	}
	if (path->a.is_known && b.is_known) {
		path->at += is_met(BPF_OP(code->code), path->a.number, b.number) ? code->jt : code->jf;
		return true;
	}
	if (walk->count == WAYS_MAX)
		return false;
	walk->paths[walk->count] = *path;
	walk->paths[walk->count++].at += code->jf;
	path->at += code->jt;
	/* The same value is compared again and again. */
	if (BPF_OP(code->code) == BPF_JEQ && b.is_known)
		path->a = b;
	return true;
}

/* To its end. True: it ends in a punishment. */
static bool walk_path(struct walk *walk, struct path *path)
{
	while (path->at < walk->length && walk->steps++ < STEPS_MAX) {
		const struct sock_filter *code = &walk->program[path->at++];
		struct value operand = BPF_SRC(code->code) == BPF_X ? path->x : known(code->k);
		struct value *cell = &path->memory[code->k % BPF_MEMWORDS];

		switch (BPF_CLASS(code->code)) {
		case BPF_LD:
		case BPF_LDX: {
			struct value *to = BPF_CLASS(code->code) == BPF_LD ? &path->a : &path->x;

			*to = BPF_MODE(code->code) == BPF_ABS   ? load(walk->call, code->k)
			      : BPF_MODE(code->code) == BPF_LEN ? known(sizeof(struct seccomp_data))
			      : BPF_MODE(code->code) == BPF_MEM ? *cell
			                                        : known(code->k);
			break;
		}
		case BPF_ST: *cell = path->a; break;
		case BPF_STX: *cell = path->x; break;
		case BPF_ALU:
			/* A division by 0 ends the program with the answer 0, which kills. */
			if (BPF_OP(code->code) == BPF_DIV && !(operand.is_known && operand.number))
				return true;
			path->a = calculate(BPF_OP(code->code), path->a, operand);
			break;
		case BPF_JMP:
			if (!jump(walk, path, code))
				return true;
			break;
		case BPF_RET:
			if (BPF_RVAL(code->code) != BPF_A)
				return is_punishment(walk->call, code->k);
			return !path->a.is_known || is_punishment(walk->call, path->a.number);
		default: /* BPF_MISC */
			if (BPF_MISCOP(code->code) == BPF_TAX)
				path->x = path->a;
			else
				path->a = path->x;
		}
	}
	return true;
}

bool seccomp_punishes(const struct sock_filter *program, size_t length, const struct seccomp_call *call)
{
	struct walk walk = { .program = program, .length = length, .call = call, .count = 1 };
	struct path path;

	/* A, X and the memory begin as 0. */
	walk.paths[0] = (struct path){ .a = known(0), .x = known(0) };
	for (size_t i = 0; i < BPF_MEMWORDS; i++)
		walk.paths[0].memory[i] = known(0);
	while (walk.count) {
		path = walk.paths[--walk.count];
		if (walk_path(&walk, &path))
			return true;
	}
	return false;
}
