/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's memory functions: memory is aligned, belongs to one caller, keeps its content, and returns to
 * the kernel. CMakeLists.txt gives the functions other names here.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/seed.h"
#include "base/lock.h"
#include "system/memory.h"

#define BLOCKS 2000

void *ours_malloc(size_t size);
void *ours_calloc(size_t count, size_t size);
void *ours_realloc(void *memory, size_t size);
void *ours_reallocarray(void *memory, size_t count, size_t size);
void ours_free(void *memory);

static uint64_t seed;

struct piece {
	unsigned char *bytes;
	size_t size;
	unsigned char mark;
};

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Sizes of all magnitudes, so that each list and large blocks are used. */
static size_t some_size(uint64_t *state)
{
	return next(state) & ((1ul << (next(state) % 20)) - 1);
}

static void check(const struct piece *piece)
{
	assert_int_equal((uintptr_t)piece->bytes % 16, 0);
	for (size_t i = 0; i < piece->size; i += i < 64 || piece->size - i < 64 ? 1 : 61)
		assert_int_equal(piece->bytes[i], piece->mark);
}

/* Allocates, resizes and frees at random. Each piece is filled with its mark. */
static void *churn(void *own_seed)
{
	uint64_t state = (uintptr_t)own_seed;
	struct piece *pieces = calloc(BLOCKS, sizeof(*pieces));

	for (int turn = 0; turn < 20000; turn++) {
		struct piece *piece = &pieces[next(&state) % BLOCKS];
		size_t size = some_size(&state);

		if (piece->bytes)
			check(piece);
		if (piece->bytes && next(&state) % 2) {
			ours_free(piece->bytes);
			piece->bytes = NULL;
			continue;
		}
		if (piece->bytes) {
			size_t kept = size < piece->size ? size : piece->size;

			piece->bytes = ours_realloc(piece->bytes, size);
			piece->size = kept;
			check(piece);
		} else if (next(&state) % 4) {
			piece->bytes = ours_malloc(size);
		} else {
			piece->bytes = ours_calloc(1, size);
			piece->mark = 0;
			piece->size = size;
			check(piece);
		}
		piece->size = size;
		piece->mark = (unsigned char)turn;
		memset(piece->bytes, piece->mark, size);
	}
	for (int i = 0; i < BLOCKS; i++)
		ours_free(pieces[i].bytes);
	free(pieces);
	return NULL;
}

/* Each arena keeps at most one empty region. */
static void memory_goes_back(void)
{
	assert_in_range(memory_mapped(), 0, 4 * 2 << 20);
}

static void content_is_kept(void **state)
{
	(void)state;
	churn((void *)(uintptr_t)seed);
	memory_goes_back();
}

static void threads_have_their_own(void **state)
{
	pthread_t threads[8];

	(void)state;
	for (uintptr_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(seed + i)), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	memory_goes_back();
}

static void too_much_is_refused(void **state)
{
	char *kept = ours_malloc(10);

	(void)state;
	for (int i = 0; i < 4; i++) {
		static const size_t sizes[] = { SIZE_MAX, PTRDIFF_MAX, (size_t)PTRDIFF_MAX - 4096,
			                        1ul << 47 };

		errno = 0;
		assert_null(ours_malloc(sizes[i]));
		assert_int_equal(errno, ENOMEM);
		assert_null(ours_realloc(kept, sizes[i]));
	}
	assert_null(ours_calloc(SIZE_MAX / 2, 3));
	assert_null(ours_reallocarray(kept, SIZE_MAX / 2, 3));
	ours_free(kept);
	ours_free(NULL);
}

/* These functions do not change the caller's errno. */
static void errno_is_kept(void **state)
{
	(void)state;
	errno = 77;
	for (size_t size = 1; size < 1 << 20; size *= 2)
		ours_free(ours_realloc(ours_malloc(size), size + size / 2));
	assert_int_equal(errno, 77);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

static int status_of_child(void (*run)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
		run();
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* A sanitizer uses most of the address space itself. */
#ifndef __SANITIZE_ADDRESS__
/* Includes the stacks and the memory of ended threads, which libc keeps. */
static rlim_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		_exit(3);
	fclose(file);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void exit_without_memory(void)
{
	const rlim_t most = address_space() + (64 << 20);
	struct rlimit limit = { most, most };
	void *last = NULL;
	int taken = 0;

	setrlimit(RLIMIT_AS, &limit);
	for (void *block; (block = ours_malloc(1000)); taken++) {
		*(void **)block = last;
		last = block;
	}
	if (errno != ENOMEM || taken < 1000)
		_exit(1);
	while (last) {
		void *before = *(void **)last;

		ours_free(last);
		last = before;
	}
	_exit(ours_malloc(100000) ? 0 : 2); /* the freed memory is available again */
}

static void limit_is_met(void **state)
{
	(void)state;
	assert_int_equal(status_of_child(exit_without_memory), 0);
}
#endif

/* --- fork ------------------------------------------------------------------------------------------ */

static bool is_over;

static void *churn_on(void *own_seed)
{
	uint64_t state = (uintptr_t)own_seed;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		ours_free(ours_malloc(some_size(&state) % 5000));
	return NULL;
}

static void take_and_exit(void)
{
	void *blocks[50];

	for (int i = 0; i < 50; i++)
		if (!(blocks[i] = ours_malloc((size_t)i * 40)))
			_exit(1);
	for (int i = 0; i < 50; i++)
		ours_free(blocks[i]);
	_exit(0);
}

static void forked_child_is_whole(void **state)
{
	const struct lock_group *group = lock_at(LOCK_MEMORY)->group;
	pthread_t threads[4];

	(void)state;
	pthread_atfork(group->before_fork, group->after_fork_in_parent, group->after_fork_in_child);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn_on, (void *)(seed + i));
	for (int i = 0; i < 100; i++)
		assert_int_equal(status_of_child(take_and_exit), 0);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* Other fork handlers run between the library's own. */
static void forking_thread_has_memory(void **state)
{
	const struct lock_group *group = lock_at(LOCK_MEMORY)->group;
	void *block = ours_malloc(100);

	(void)state;
	group->before_fork();
	assert_non_null(block = ours_realloc(block, 100000));
	ours_free(block);
	group->after_fork_in_parent();
	ours_free(ours_malloc(100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errno_is_kept),          cmocka_unit_test(content_is_kept),
		cmocka_unit_test(threads_have_their_own), cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(forked_child_is_whole),  cmocka_unit_test(forking_thread_has_memory),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(limit_is_met),
#endif
	};

	seed = test_seed(34);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
