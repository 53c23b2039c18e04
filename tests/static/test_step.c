/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a SQLite inside patches itself, and steps instruction by instruction through entry, stub,
 * wrapper, displaced instructions and body. At each instruction the stack must lead to the host's call, and
 * then continue as before that call. It may be truncated only at the few instructions whose unwind
 * information is known to be wrong (handler/unwind/distrust.h). The protection of memory must not change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include <queryprof.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "sqlite/static/copies.h"
#include "sqlite/static/stub.h"

#define FRAMES 200
#define STEPS_MAX 1000000
#define CUT_MAX 10 /* in one call; clang 14's SQLite has 3 such places of 2 instructions */

static struct static_copy copy;

static void no_table(const char *path, enum static_found found)
{
	fail_msg("%s: no table (%d)", path, found);
}

static char *read_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "re"), *out;
	char line[4096 + 200], *text;
	size_t size;

	out = open_memstream(&text, &size);
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		unsigned long start;
		char rights[5];

		assert_int_equal(sscanf(line, "%lx-%*x %4s", &start, rights), 2);
		assert_false(rights[1] == 'w' && rights[2] == 'x');
		if (static_is_in(&copy.object.image, start))
			fputs(line, out);
	}
	fclose(file);
	fclose(out);
	return text;
}

static void test_patched(void **state)
{
	struct copies_search search = { 0 };
	struct static_copy copies[STATIC_TABLES_MAX];
	size_t count = copies_find(&search, copies, STATIC_TABLES_MAX, no_table);
	char *before, *after;

	(void)state;
	assert_int_equal(count, 1);
	copy = copies[0];
	assert_true(copy.is_of_program);
	assert_int_equal(copy.table.version, sqlite3_libversion_number());
	before = read_maps();
	assert_int_equal(stub_jump_target((uintptr_t)sqlite3_step), 0);
	if (qp_record_static((const void *)copy.table.routines) != QP_OK)
		fail_msg("%s", qp_error());
	assert_int_not_equal(stub_jump_target((uintptr_t)sqlite3_step), 0);
	assert_int_equal(qp_record_static((const void *)copy.table.routines), QP_OK);
	after = read_maps();
	assert_string_equal(before, after);
	free(before);
	free(after);
	assert_int_equal(qp_init(NULL), QP_OK);
	assert_int_equal(qp_record_static((const void *)&copy), QP_INVALID);
}

/* --- steps ----------------------------------------------------------------------------------- */

static struct {
	bool is_on;
	uintptr_t function, sp; /* the entry that is called, and the stack pointer there */
	uint64_t expected[FRAMES];
	int expected_depth;
	uint64_t steps, in_stub, cut, wrong, at_entry;
	uintptr_t first_wrong;
} now;

static bool is_in_stubs(uintptr_t pc)
{
	uintptr_t stub = stub_jump_target(now.function);

	return pc - (stub & ~(uintptr_t)4095) < 8192;
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	ucontext_t *registers = context;
	uintptr_t pc = (uintptr_t)registers->uc_mcontext.gregs[REG_RIP];
	uintptr_t sp = (uintptr_t)registers->uc_mcontext.gregs[REG_RSP];
	static uint64_t trace[FRAMES];
	int depth, tail;

	(void)number, (void)info;
	if (!now.is_on)
		return;
	if (pc == now.function && !now.sp) {
		now.sp = sp;
		now.expected_depth = qp_unwind(context, now.expected, FRAMES);
	}
	if (!now.sp)
		return;
	if (sp > now.sp || now.steps == STEPS_MAX) { /* the call has returned */
		now.is_on = false;
		registers->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x100;
		return;
	}
	now.steps++;
	now.at_entry += pc == now.function;
	now.in_stub += is_in_stubs(pc);
	depth = qp_unwind(context, trace, FRAMES);
	/* Compares the frames from the caller on. */
	tail = now.expected_depth - 1;
	if (depth < 0)
		now.cut++;
	else if (depth < tail + 1 ||
	         memcmp(trace + depth - tail, now.expected + 1, (size_t)tail * sizeof(*trace))) {
		if (!now.wrong++)
			now.first_wrong = pc;
	}
}

static void begin(const void *function)
{
	memset(&now, 0, sizeof(now));
	now.function = (uintptr_t)function;
	now.is_on = true;
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
			: "memory", "cc");
}

static void end(const char *name)
{
	now.is_on = false;
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
			: "memory", "cc");
	print_message("%-22s %6lu steps, %lu of them in the stub, %lu cut, %lu wrong\n", name, now.steps,
	              now.in_stub, now.cut, now.wrong);
	assert_true(now.steps > 20);
	assert_int_equal(now.at_entry, 1);
	assert_true(now.in_stub >= 5);
	assert_true(now.cut <= CUT_MAX);
	if (now.wrong)
		fail_msg("%s: first at %#lx, in its object %#lx", name, now.first_wrong,
		         now.first_wrong - copy.object.bias);
}

#define STEPPED(function, ...)                                                                               \
	({                                                                                                   \
		/* volatile: link-time optimisation would inline a part of the function here */              \
		__typeof__(&(function)) volatile called_ = function;                                         \
		__typeof__(function(__VA_ARGS__)) result_;                                                   \
		begin((const void *)function);                                                               \
		result_ = called_(__VA_ARGS__);                                                              \
		end(#function);                                                                              \
		result_;                                                                                     \
	})

static void test_steps(void **state)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = on_trap };
	sqlite3_stmt *stmt;
	sqlite3_blob *blob;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, x'0102')", NULL, NULL, NULL),
		SQLITE_OK);
	sigaction(SIGTRAP, &action, NULL);
	/* The first runs are not stepped. They bind the names, and the sampler starts. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sqlite3_prepare_v2(db, "SELECT a FROM t", -1, &stmt, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
		assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
	}
	assert_int_equal(STEPPED(sqlite3_prepare_v2, db, "SELECT a FROM t", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(STEPPED(sqlite3_step, stmt), SQLITE_ROW);
	assert_int_equal(STEPPED(sqlite3_reset, stmt), SQLITE_OK);
	assert_int_equal(STEPPED(sqlite3_finalize, stmt), SQLITE_OK);
	/* The steps take so long that the statement has had samples, and the library has read its plan. That
	 * suffices. */
	assert_int_equal(qp_set(db, "query_profiler_cpu_time_period_ns", "0"), 0);
	assert_int_equal(qp_set(db, "query_profiler_real_time_period_ns", "0"), 0);
	assert_int_equal(STEPPED(sqlite3_exec, db, "INSERT INTO t VALUES (2, 3)", NULL, NULL, NULL),
	                 SQLITE_OK);
	assert_int_equal(STEPPED(sqlite3_blob_open, db, "main", "t", "b", 1, 0, &blob), SQLITE_OK);
	assert_int_equal(STEPPED(sqlite3_blob_close, blob), SQLITE_OK);
	assert_int_equal(STEPPED(sqlite3_wal_checkpoint, db, "main"), SQLITE_OK);
	assert_int_equal(STEPPED(sqlite3_close_v2, db), SQLITE_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_patched), cmocka_unit_test(test_steps) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
