/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other threads see all of a run or nothing of it, even if its texts are freed.
 */
#include "common.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_BYTES 65536

static struct ring *ring;

static int set_up(void **state)
{
	(void)state;
	ring = ring_create(RING_BYTES);
	return ring == NULL || sampler_init(ring) != 0;
}

/* Finds the only run that is shown now; fails if there is another. */
static bool find_only(struct query_view *view)
{
	struct query_view more;
	struct query_run *run = query_next_shown(NULL, view);

	if (run == NULL)
		return false;
	assert_null(query_next_shown(run, &more));
	return true;
}

static void test_shown_and_hidden(void **state)
{
	static struct query_run run;
	struct query_view view;

	(void)state;
	run.session = 0xfedcba98;
	query_start(&run, sampler_thread());
	run.text = "SELECT 1";
	run.database = "a.db";
	assert_false(find_only(&view));
	query_show(&run);
	query_show(&run);
	burn(2000000);
	run.rows = 7;
	run.working = thread_current->id;
	assert_true(find_only(&view));
	printf("elapsed %llu ns, CPU %llu ns\n", (unsigned long long)view.elapsed_ns,
	       (unsigned long long)view.cpu_time_ns);
	assert_string_equal(view.text, "SELECT 1");
	assert_string_equal(view.database, "a.db");
	assert_null(view.query_id);
	assert_int_equal(view.rows, 7);
	assert_int_equal(view.thread_id, thread_current->id);
	assert_int_equal(view.working, thread_current->id);
	assert_int_equal(view.session, 0xfedcba98);
	assert_int_equal(query_key_session(view.key), 0xfedcba98);
	assert_true(view.elapsed_ns >= 2000000);
	assert_true(view.cpu_time_ns >= 1900000 && view.cpu_time_ns <= view.elapsed_ns);
	query_view_free(&view);
	query_hide(&run);
	query_hide(&run);
	assert_false(find_only(&view));
}

/* A run is found only under its own key, and not after it is hidden. The start record of its first sample
 * names the run, also after the run has moved. */
static void test_one_run(void **state)
{
	static struct query_run run, moved;
	struct query_key other;
	struct query_view view;

	(void)state;
	query_start(&run, sampler_thread());
	run.text = "SELECT 1";
	query_show(&run);
	assert_ptr_equal(run.counts.start.run, &run);
	assert_true(query_inspect(&run, run.key, &view));
	assert_string_equal(view.text, "SELECT 1");
	query_view_free(&view);
	other = (struct query_key){ run.key.hi, run.key.lo + 1 };
	assert_false(query_inspect(&run, other, &view));
	query_hide(&run);
	assert_false(query_inspect(&run, run.key, &view));
	query_start(&moved, sampler_thread());
	moved.text = "SELECT 2";
	query_show(&moved);
	query_hide(&moved);
	query_hand_over(&moved, &run);
	query_show(&moved);
	assert_ptr_equal(moved.counts.start.run, &moved);
	assert_true(query_inspect(&moved, run.key, &view));
	query_view_free(&view);
	query_hide(&moved);
}

/* An abandoned run whose text was freed, or overwritten. */
static void test_text_that_went(void **state)
{
	static struct query_run run;
	const size_t page = 4096;
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct query_view view;

	(void)state;
	assert_true(memory != MAP_FAILED);
	memset(memory, 'x', 2 * page - 1);
	run.text = memory + 10;
	query_start(&run, sampler_thread());
	query_show(&run);
	assert_true(find_only(&view));
	assert_non_null(view.text);
	assert_int_equal(strlen(view.text), 2 * page - 11);
	query_view_free(&view);

	memcpy(memory + 10, "12345678", 8);
	assert_true(find_only(&view));
	assert_null(view.text);
	query_view_free(&view);

	memset(memory + 10, 'x', 8);
	munmap(memory + page, page);
	assert_true(find_only(&view));
	assert_null(view.text);
	query_view_free(&view);
	munmap(memory, page);
	assert_true(find_only(&view));
	assert_null(view.text);
	query_view_free(&view);
	query_hide(&run);
}

/* --- many threads ---------------------------------------------------------------------- */

#define RUNNERS 3
#define LOOKS 2000

static bool stop;

/* Runs begin and end in one place, as fast as they can. Their texts show whether a view mixes two of them:
 * each text is the number of rows, and is overwritten after its run. */
static void *run_many(void *context)
{
	struct query_run *mine = context;
	char text[2][32];

	for (uint64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		snprintf(text[i % 2], sizeof(text[0]), "%llu", (unsigned long long)i);
		mine->text = mine->database = text[i % 2];
		mine->rows = i;
		query_start(mine, sampler_thread());
		query_show(mine);
		if (i % 8 == 0) /* else too short for a whole look */
			burn(50000);
		query_hide(mine);
		memset(text[i % 2], '-', sizeof(text[0]));
	}
	return NULL;
}

static void test_while_they_run(void **state)
{
	static struct query_run runs[RUNNERS];
	pthread_t threads[RUNNERS];
	uint64_t seen = 0;

	(void)state;
	for (int i = 0; i < RUNNERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_many, &runs[i]), 0);
	while (seen < LOOKS) {
		struct query_view view;
		for (struct query_run *run = NULL; (run = query_next_shown(run, &view));) {
			char rows[32];
			snprintf(rows, sizeof(rows), "%llu", (unsigned long long)view.rows);
			assert_non_null(view.text);
			assert_string_equal(view.text, rows);
			assert_string_equal(view.database, rows);
			query_view_free(&view);
			seen++;
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < RUNNERS; i++)
		pthread_join(threads[i], NULL);
	printf("%llu whole views of runs on %d threads\n", (unsigned long long)seen, RUNNERS);
}

/* A filter kills the process at the system call that copies memory. Texts are seen all the same. */
static void test_filtered(void **state)
{
	static struct query_run run;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
	int status;

	(void)state;
	char *text = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(text, MAP_FAILED);
	memset(text, 'x', 2 * 4096 + 100);
	assert_int_equal(mprotect(text + 2 * 4096, 4096, PROT_READ), 0);
	query_start(&run, sampler_thread());
	run.text = text;
	run.database = text + 4096;
	run.query_id = "mine";
	query_show(&run);
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0) {
		struct query_view view;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
			_exit(77);
		munmap(text, 4096);
		_exit(query_next_shown(NULL, &view) != &run ? 2
		      : view.text                           ? 3
		      : view.database == NULL || strcmp(view.database, text + 4096) != 0
		              ? 4
		              : strcmp(view.query_id, "mine") != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	query_hide(&run);
	munmap(text, 3 * 4096);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	printf("status %#x\n", (unsigned)status);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown_and_hidden), cmocka_unit_test(test_one_run),
		cmocka_unit_test(test_text_that_went),   cmocka_unit_test(test_while_they_run),
		cmocka_unit_test(test_filtered),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
