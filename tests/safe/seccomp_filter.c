/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's evaluation of seccomp filters agrees with the kernel's. A child installs each random filter
 * and then makes the call.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hook/seccomp_filter.h"
#include "../lib/seed.h"

#define CODE(code, k) ((struct sock_filter)BPF_STMT(code, k))
#define JUMP(code, k, yes, no) ((struct sock_filter)BPF_JUMP(BPF_JMP | (code), k, yes, no))

/* A call that nothing else in the child makes. */
#define CALL SYS_mincore
static const uint64_t given[6] = { 1, 0x100000002, 3, 0xfffffffe, 5, 0x8000000000000000 };

static unsigned pick(unsigned below)
{
	return (unsigned)rand() % below;
}

static uint32_t pick_answer(void)
{
	static const uint32_t answers[] = { SECCOMP_RET_ALLOW,        SECCOMP_RET_ERRNO | 1,
		                            SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
		                            SECCOMP_RET_TRAP,         SECCOMP_RET_TRACE,
		                            SECCOMP_RET_LOG,          0x12340000 };

	return answers[pick(sizeof(answers) / sizeof(*answers))];
}

static uint32_t pick_number(void)
{
	static const uint32_t numbers[] = {
		0, 1, 2, 3, 5, 31, 32, 0xffffffff, 0x80000000, CALL, AUDIT_ARCH_X86_64
	};

	return numbers[pick(sizeof(numbers) / sizeof(*numbers))];
}

/* Few different numbers, so that conditions are often true. */
static struct sock_filter pick_code(unsigned left)
{
	static const uint16_t operations[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
		                               BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG };
	static const uint16_t conditions[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	uint16_t source = pick(2) ? BPF_X : BPF_K;
	uint16_t operation = operations[pick(10)];
	uint32_t k = pick_number();

	/* The kernel refuses division by 0 and such shifts. */
	if (operation == BPF_DIV && source == BPF_K && !k)
		k = 1;
	if ((operation == BPF_LSH || operation == BPF_RSH) && source == BPF_K)
		k %= 32;
	switch (pick(8)) {
	case 0:
	case 1: return CODE(BPF_LD | BPF_W | BPF_ABS, 4 * pick(16));
	case 2: return pick(2) ? CODE(BPF_LD | BPF_IMM, k) : CODE(BPF_LDX | BPF_W | BPF_LEN, 0);
	case 3: return pick(2) ? CODE(BPF_ST, pick(BPF_MEMWORDS)) : CODE(BPF_STX, pick(BPF_MEMWORDS));
	case 4: return pick(2) ? CODE(BPF_MISC | BPF_TAX, 0) : CODE(BPF_MISC | BPF_TXA, 0);
	case 5: return CODE(BPF_ALU | operation | source, k);
	default:
		return left < 2 ? CODE(BPF_RET | BPF_K, pick_answer())
		                : JUMP(conditions[pick(4)] | source, k, (uint8_t)pick(left),
		                       (uint8_t)pick(left));
	}
}

static size_t make_program(struct sock_filter *program)
{
	size_t size = 4 + pick(20);

	for (size_t i = 0; i < size; i++)
		program[i] = pick_code((unsigned)(size - i));
	program[size] = CODE(BPF_RET | (pick(8) ? BPF_K : BPF_A), pick_answer());
	return size + 1;
}

enum { KERNEL_REFUSES, KERNEL_LETS_LIVE, KERNEL_PUNISHES };

/* Adds instructions before the program that allow all other calls. */
static int ask_kernel(const struct sock_filter *program, size_t size)
{
	struct sock_filter whole[40] = { CODE(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		                         JUMP(BPF_JEQ | BPF_K, CALL, 1, 0),
		                         CODE(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog filter = { .len = (unsigned short)(size + 3), .filter = whole };
	pid_t child;
	int status;

	memcpy(whole + 3, program, size * sizeof(*program));
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		signal(SIGSYS, SIG_DFL); /* instead of cmocka's handler */
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			_exit(KERNEL_REFUSES);
		syscall(CALL, given[0], given[1], given[2], given[3], given[4], given[5]);
		_exit(KERNEL_LETS_LIVE);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : KERNEL_PUNISHES;
}

static struct seccomp_call the_call(unsigned known)
{
	struct seccomp_call call = { .number = CALL, .known = known };

	memcpy(call.arguments, given, sizeof(given));
	return call;
}

/* As in ask_kernel(), A contains the call's number when the program starts. */
static void random_programs(void **state)
{
	struct sock_filter program[40] = { CODE(BPF_LD | BPF_W | BPF_ABS,
		                                offsetof(struct seccomp_data, nr)) };
	const struct seccomp_call all = the_call(0x3f);
	int seen[3] = { 0 };

	(void)state;
	for (int i = 0; i < 3000; i++) {
		size_t size = make_program(program + 1);
		int kernel;

		/* The library does not know the address of the call. */
		for (size_t j = 1; j <= size; j++)
			if (program[j].code == (BPF_LD | BPF_W | BPF_ABS) &&
			    (program[j].k == 8 || program[j].k == 12))
				program[j].k = 0;
		kernel = ask_kernel(program + 1, size);
		seen[kernel]++;
		if (kernel == KERNEL_REFUSES)
			continue;
		if (seccomp_punishes(program, size + 1, &all) != (kernel == KERNEL_PUNISHES))
			fail_msg("program %d: the kernel %s", i,
			         kernel == KERNEL_PUNISHES ? "punishes" : "does not");
		/* If less is known, the library may assume more punishment, but never less. */
		for (unsigned known = 0; kernel == KERNEL_PUNISHES && known < 0x3f; known += 7) {
			const struct seccomp_call some = the_call(known);

			assert_true(seccomp_punishes(program, size + 1, &some));
		}
	}
	printf("%d refused, %d lived, %d were punished\n", seen[0], seen[1], seen[2]);
	if (!seen[1] && !seen[2])
		skip(); /* this system has no seccomp */
	assert_in_range(seen[1], 100, 3000);
	assert_in_range(seen[2], 100, 3000);
}

/* A filter that reads an argument, as libseccomp makes it. */
static void unknown_arguments(void **state)
{
	const uint32_t low = offsetof(struct seccomp_data, args);
	const struct sock_filter program[] = {
		CODE(BPF_LD | BPF_W | BPF_ABS, low),      JUMP(BPF_JEQ | BPF_K, 1, 2, 0),
		JUMP(BPF_JEQ | BPF_K, 2, 1, 0),           CODE(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		CODE(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct seccomp_call call = the_call(0x3f);

	(void)state;
	assert_false(seccomp_punishes(program, 5, &call));
	call.arguments[0] = 7;
	assert_true(seccomp_punishes(program, 5, &call));
	call.known = 0x3e;
	assert_true(seccomp_punishes(program, 5, &call));
	/* For every argument, the call is allowed or refused. */
	const struct sock_filter either[] = {
		CODE(BPF_LD | BPF_W | BPF_ABS, low),
		JUMP(BPF_JGT | BPF_K, 1, 0, 1),
		CODE(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		CODE(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	assert_false(seccomp_punishes(either, 4, &call));
	call.must_succeed = true;
	assert_true(seccomp_punishes(either, 4, &call));
}

/* The longest filter that the kernel accepts, with many branches, is evaluated quickly. */
static void many_ways(void **state)
{
	static struct sock_filter program[BPF_MAXINSNS];
	struct seccomp_call call = the_call(0);

	(void)state;
	for (size_t i = 0; i + 1 < BPF_MAXINSNS; i++)
		program[i] =
			i % 2 ? JUMP(BPF_JGT | BPF_K, (uint32_t)i, 0, (uint8_t)(i + 3 < BPF_MAXINSNS ? 1 : 0))
			      : CODE(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
	program[BPF_MAXINSNS - 1] = CODE(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* There are too many paths to follow all. */
	assert_true(seccomp_punishes(program, BPF_MAXINSNS, &call));
	call.known = 1;
	assert_false(seccomp_punishes(program, BPF_MAXINSNS, &call));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_programs),
		cmocka_unit_test(unknown_arguments),
		cmocka_unit_test(many_ways),
	};

	srand((unsigned)test_seed(1));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
