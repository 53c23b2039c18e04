/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of an interpreter, as a signal handler reads it: the pages of the last call stack come with one
 * call of the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "handler/unwind/stack_copy.h"
#include "interpreter/memory.h"
#include "../lib/seed.h"

#define PAGES 20 /* more than are kept */
#define ROUNDS 1000
#define READ_IN_ROUND 18

static int copying_calls;

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __real_syscall(long number, ...);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	copying_calls += number == SYS_process_vm_readv;
	return __real_syscall(number, a, b, c, d, e, f);
}

static unsigned char *pages;

static uintptr_t page_at(int page)
{
	return (uintptr_t)pages + (uintptr_t)page * STACK_COPY_BYTES;
}

static void write_page(int page, uint64_t value)
{
	*(volatile uint64_t *)page_at(page) = value;
}

static int begin(void **state)
{
	(void)state;
	pages = mmap(NULL, PAGES * STACK_COPY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	             0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	copying_calls = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	munmap(pages, PAGES * STACK_COPY_BYTES);
	return 0;
}

/* Reads the first pages, which have these values and those after it. */
static void read_pages(int count, uint64_t value)
{
	struct memory *memory = memory_acquire();

	assert_non_null(memory);
	for (int page = 0; page < count; page++)
		assert_int_equal(memory_word(memory, page_at(page)), value + (uint64_t)page);
	memory_release();
}

static void write_pages(int count, uint64_t value)
{
	for (int page = 0; page < count; page++)
		write_page(page, value + (uint64_t)page);
}

static void the_same_pages_need_one_call(void **state)
{
	(void)state;
	write_pages(4, 100);
	read_pages(4, 100);
	write_pages(4, 200);
	copying_calls = 0;
	read_pages(4, 200);
	assert_int_equal(copying_calls, 1);
}

/* The same for a call stack that no signal handler reads. */
static void one_that_is_closed_is_opened_again(void **state)
{
	(void)state;
	for (uint64_t value = 0; value < 3; value++) {
		struct memory *memory;

		write_pages(4, value);
		copying_calls = 0;
		memory = memory_open();
		for (int page = 0; page < 4; page++)
			assert_int_equal(memory_word(memory, page_at(page)), value + (uint64_t)page);
		memory_close(memory);
		memory_close(NULL);
	}
	assert_int_equal(copying_calls, 1);
}

/* The pages that are read after it are copied again, too. */
static void a_page_that_has_gone_is_not_read(void **state)
{
	struct memory *memory;

	(void)state;
	write_pages(4, 300);
	read_pages(4, 300);
	munmap((void *)page_at(1), STACK_COPY_BYTES);
	write_page(0, 400);
	write_page(2, 402);
	write_page(3, 403);
	memory = memory_acquire();
	assert_int_equal(memory_word(memory, page_at(0)), 400);
	assert_int_equal(memory_word(memory, page_at(1)), 0);
	assert_int_equal(memory_word(memory, page_at(2)), 402);
	assert_int_equal(memory_word(memory, page_at(3)), 403);
	memory_release();
}

static void any_order_of_pages_is_right(void **state)
{
	uint64_t random = test_seed(4711), truth[PAGES] = { 0 };

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct memory *memory = memory_acquire();

		assert_non_null(memory);
		for (int i = 0; i < READ_IN_ROUND; i++) {
			int page;

			random = random * 6364136223846793005u + 1442695040888963407u;
			page = (int)(random >> 33) % (round % PAGES + 1);
			assert_int_equal(memory_word(memory, page_at(page)), truth[page]);
		}
		memory_release();
		for (int page = 0; page < PAGES; page++)
			write_page(page, truth[page] = (uint64_t)(round * PAGES + page));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_same_pages_need_one_call, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_closed_is_opened_again, begin, end),
		cmocka_unit_test_setup_teardown(a_page_that_has_gone_is_not_read, begin, end),
		cmocka_unit_test_setup_teardown(any_order_of_pages_is_right, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
