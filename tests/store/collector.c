/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each record that a process commits to its shared ring reaches the file once, even if the process is killed.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "label/sets.h"
#include "span/chunk.h"
#include "span/chunk_pool.h"
#include "wire/label_record.h"
#include "wire/span_record.h"
#include "store/collector.h"
#include "handover/shared_ring.h"
#include "store/write/batch.h"
#include "store/write/lifecycle.h"

#define FLUSHED 100
#define LATER 50
#define SPANS 3
#define RING_BYTES (1 << 20)

static const struct module modules[] = {
	{ .start = 0x7f0000000000,
	  .end = 0x7f0000020000,
	  .path = "/usr/lib/one.so",
	  .build_id = "11",
	  .born = 1,
	  .died = UINT32_MAX },
};

/* --- the process that is killed -------------------------------------------------------- */

/* If set, puts other records than samples. */
static void (*put_instead)(void);
static size_t ring_size = RING_BYTES;

static void put_spans(void)
{
	for (uint64_t i = 0; i < SPANS; i++) {
		struct span_batch *batch = ring_reserve(ring, sizeof(*batch) + sizeof(batch->entry[0]));

		*batch = (struct span_batch){
			.first = 100 + i, .began_ns = T0, .thread_id = 4242, .entries = 1
		};
		batch->entry[0] = (struct span_entry){ .start_ns = T0, .duration = 1000 };
		ring_commit(ring, batch, RECORD_SPANS);
	}
}

/* Samples follow a record that is never committed. */
static void put_unfinished(void)
{
	const uint64_t trace[] = { 0x7f0000000123 };
	void *never = ring_reserve(ring, 64);

	for (int i = 0; i < LATER; i++)
		put_sample((struct a_sample){
			.timestamp_ns = T0 + 1000000000 + (uint64_t)i, .trace = trace, .depth = 1 });
	memset(never, 0, 64);
}

static void be_killed(bool has_unfinished, int to_parent, int from_parent)
{
	struct query_key key = { 1, 2 };
	char byte;
	int fd = shared_ring_memory(shared_ring_size(ring_size));

	ring = shared_ring_make(ring_size, fd);
	if (!ring || write(to_parent, &fd, sizeof(fd)) != sizeof(fd) || read(from_parent, &byte, 1) != 1)
		_exit(1);
	put_thread(4242, "worker");
	if (put_instead)
		put_instead();
	else
		put_samples(T0, FLUSHED, 5, key);
	if (has_unfinished)
		put_unfinished();
	kill(getpid(), SIGKILL);
}

/* Returns the descriptor of the process's ring. */
static int run_and_kill(bool has_unfinished)
{
	int to_parent[2], to_child[2], fd, status;
	char path[64];
	pid_t child;

	assert_int_equal(pipe(to_parent) | pipe(to_child), 0);
	child = fork();
	if (!child)
		be_killed(has_unfinished, to_parent[1], to_child[0]);
	assert_int_equal(read(to_parent[0], &fd, sizeof(fd)), sizeof(fd));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)child, fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(to_child[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	for (int i = 0; i < 2; i++) {
		close(to_parent[i]);
		close(to_child[i]);
	}
	return fd;
}

/* --- the process that stores ------------------------------------------------------------- */

static int64_t count(const char *what)
{
	return strtoll(ask_file(trace_path, what), NULL, 10);
}

static void remove_trace(void)
{
	unlink(trace_path);
	unlink(in_folder("x.db-wal"));
	unlink(in_folder("x.db-shm"));
}

/* Another process meanwhile writes the next batch to the file. */
static void write_another_batch(void)
{
	const uint64_t trace[] = { 0x5000 };

	start_store(trace_path, 0);
	assert_true(put_sample(
		(struct a_sample){ .timestamp_ns = T0 - 1, .thread_id = 7, .trace = trace, .depth = 1 }));
	drain();
	stop_store();
}

/* Reads the ring `looks` times as if the process still ran, and then for the last time. */
static void store_all(int fd, int looks, struct collection *to)
{
	struct recorded *recorded = recorded_open(fd);

	to->file.path = trace_path;
	if (!recorded)
		return;
	for (int i = 0; i < looks; i++)
		recorded_store(recorded, to);
	recorded_end(recorded, to);
}

static void test_once(void **state)
{
	(void)state;
	set_modules(modules, 1);
	for (int turn = 0; turn < 8; turn++) {
		bool has_unfinished = turn & 1, has_other = turn & 2;
		int looks = turn & 4 ? 2 : 0;
		int64_t expected = FLUSHED + (has_unfinished ? LATER : 0);
		struct collection to = { .samples = 0 };
		int fd = run_and_kill(has_unfinished);

		if (has_other)
			write_another_batch();
		/* The second pass finds nothing new. */
		for (int i = 0; i < 2; i++)
			store_all(fd, looks, &to);
		close(fd);
		assert_int_equal(count("SELECT count(*) FROM trace_log WHERE thread_name = 'worker'"),
		                 expected);
		assert_int_equal(count("SELECT count(*) FROM trace_log WHERE process_id = 0"), 0);
		assert_int_equal(to.samples, expected);
		assert_false(losses_are_pending(&to.losses));
		assert_int_equal(count("SELECT count(*) FROM losses"), has_unfinished);
		assert_int_equal(
			count("SELECT total(samples) FROM losses WHERE reason LIKE '%still writing%'"),
			has_unfinished);
		/* The file has its modules. */
		assert_int_equal(count("SELECT count(*) FROM modules WHERE path = '/usr/lib/one.so'"), 1);
		assert_int_equal(
			count("SELECT count(*) FROM stacks, json_each(trace) AS a JOIN trace_log AS s ON "
		              "s.stack_id"
		              " = stacks.id WHERE s.thread_name = 'worker' AND a.value & 0x4000000000000000"),
			0);
		assert_intact(trace_path);
		remove_trace();
	}
}

static void test_spans_once(void **state)
{
	struct collection to = { .samples = 0 };

	(void)state;
	put_instead = put_spans;
	for (int looks = 0; looks < 2; looks++) {
		int fd = run_and_kill(false);

		store_all(fd, looks, &to);
		close(fd);
		assert_int_equal(count("SELECT count(*) FROM span_log"), SPANS);
		remove_trace();
	}
	put_instead = NULL;
}

/* A crash may have written anything to the memory, and so may a process that sends a descriptor. */
static void test_damaged(void **state)
{
	struct collection to = { .samples = 0 };

	(void)state;
	set_modules(modules, 1);
	srand(11);
	for (int round = 0; round < 60; round++) {
		int fd = run_and_kill(false);

		for (int i = 0; i <= round; i++) {
			/* Offsets of the front, the ring's own fields, its block, and the log. */
			const int places[] = { 0, 4096, 8192, 8192 + RING_BYTES };
			uint64_t word = (uint64_t)rand() << (rand() % 40);

			assert_int_equal(pwrite(fd, &word, 8, places[rand() % 4] + rand() % 512 * 8), 8);
		}
		store_all(fd, round % 2, &to);
		close(fd);
	}
	assert_intact(trace_path);
}

/* --- a hostile process -------------------------------------------------------------------- */

#define STARTS 20
#define HOSTILE_ROUNDS 6

static const char hostile_text[] = "SELECT hostile";

static void put_starts(void)
{
	for (uint64_t i = 0; i < STARTS; i++) {
		put_start((struct query_key){ 5, i }, START_PUBLISHED, hostile_text);
		put_samples(T0 + i * 1000000, FLUSHED, 5, (struct query_key){ 5, i });
	}
}

/* The shared memory that a thread changes. */
struct hostile {
	char *memory;
	size_t size;
	uint32_t *text_sizes[STARTS]; /* of the records */
	uint64_t **words;             /* the nonzero words */
	size_t count;
	atomic_uint turns;
	atomic_bool has_to_end;
};

/* Makes text sizes and random words wrong for a moment. */
static void *change(void *argument)
{
	struct hostile *hostile = argument;
	uint64_t random = 0x9e3779b97f4a7c15;

	for (unsigned turn = 0; !hostile->has_to_end; turn++) {
		volatile uint32_t *text_size = hostile->text_sizes[turn % STARTS];
		volatile uint64_t *word;
		uint64_t before;

		*text_size = *text_size == strlen(hostile_text) ? UINT32_MAX / 4 : strlen(hostile_text);
		random = random * 6364136223846793005u + 1442695040888963407u;
		word = hostile->words[(random >> 33) % hostile->count];
		before = *word;
		*word = random >> turn % 64;
		hostile->turns++;
		*word = before;
	}
	return NULL;
}

static void become_hostile(struct hostile *hostile, int fd)
{
	char *at;

	hostile->size = (size_t)lseek(fd, 0, SEEK_END);
	hostile->memory = mmap(NULL, hostile->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(hostile->memory != MAP_FAILED);
	at = hostile->memory;
	for (int i = 0; i < STARTS; i++) {
		at = memmem(at, hostile->size - (size_t)(at - hostile->memory), hostile_text,
		            strlen(hostile_text));
		assert_non_null(at);
		hostile->text_sizes[i] =
			&((struct start_record *)(at - offsetof(struct start_record, text)))->text_size;
		assert_int_equal(*hostile->text_sizes[i], strlen(hostile_text));
		at++;
	}
	hostile->words = malloc(hostile->size / sizeof(uint64_t) * sizeof(*hostile->words));
	assert_non_null(hostile->words);
	for (uint64_t *word = (uint64_t *)hostile->memory; (char *)word < hostile->memory + hostile->size;
	     word++)
		if (*word)
			hostile->words[hostile->count++] = word;
}

/* A process that lost its rights still writes while the collector reads the memory. */
static void test_changed_meanwhile(void **state)
{
	struct collection to = { .samples = 0 };

	(void)state;
	set_modules(modules, 1);
	put_instead = put_starts;
	for (int round = 0; round < HOSTILE_ROUNDS; round++) {
		struct hostile hostile = { .count = 0 };
		int fd = run_and_kill(false);
		pthread_t thread;

		become_hostile(&hostile, fd);
		assert_int_equal(pthread_create(&thread, NULL, change, &hostile), 0);
		assert_eventually(hostile.turns > 0);
		store_all(fd, 4, &to);
		hostile.has_to_end = true;
		pthread_join(thread, NULL);
		munmap(hostile.memory, hostile.size);
		free(hostile.words);
		close(fd);
	}
	put_instead = NULL;
	assert_true(to.samples > 0);
	assert_intact(trace_path);
}

/* Reading a page that was truncated away would raise SIGBUS. */
static void test_truncated(void **state)
{
	struct collection to = { .samples = 0 };
	int fd = run_and_kill(false), unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	off_t size = lseek(fd, 0, SEEK_END);
	char *memory = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);

	(void)state;
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(write(unsealed, memory, (size_t)size), size);
	munmap(memory, (size_t)size);
	store_all(unsealed, 1, &to);
	close(unsealed);
	assert_int_equal(to.samples, 0);
	store_all(fd, 0, &to);
	close(fd);
	assert_int_equal(to.samples, FLUSHED);
}

/* The process gave a page back, and the kernel refuses to allocate it again. A mapping beyond a file's end
 * acts the same. */
static void test_page_taken_away(void **state)
{
	int fd = run_and_kill(false), empty = memfd_create("empty", MFD_CLOEXEC);
	struct shared_ring shared;
	sigset_t all, before;

	(void)state;
	assert_true(shared_ring_guard());
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	assert_true(shared_ring_open(&shared, fd));
	assert_true(mmap(shared.origin, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0) ==
	            shared.origin);
	shared_ring_tell_plans_lost(&shared, 7);
	shared_ring_close(&shared);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGBUS, SIG_DFL);
	close(empty);
	close(fd);
}

/* If the kernel never overcommits memory, all pages of the ring are allocated in advance. */
static void test_strict_memory(void **state)
{
	const size_t size = shared_ring_size(RING_BYTES);
	char *mode = in_folder("mode");
	struct stat status;
	pid_t child;
	int fd, end;

	(void)state;
	fd = open(mode, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, "2\n", 2), 2);
	close(fd);
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(mode, "/proc/sys/vm/overcommit_memory", NULL, MS_BIND, NULL))
			_exit(2);
		fd = shared_ring_memory(size);
		_exit(fd < 0 || fstat(fd, &status) || (size_t)status.st_size != size ||
		      (size_t)status.st_blocks * 512 < size);
	}
	assert_int_equal(waitpid(child, &end, 0), child);
	assert_true(WIFEXITED(end));
	if (WEXITSTATUS(end) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(end), 0);
}

static void test_no_memory_for_a_copy(void **state)
{
	struct collection to = { .file.path = trace_path };
	struct recorded *recorded;
	struct rlimit before, none;
	int fd = run_and_kill(false);

	(void)state;
	recorded = recorded_open(fd);
	getrlimit(RLIMIT_AS, &before);
	none = (struct rlimit){ 1 << 20, before.rlim_max };
	setrlimit(RLIMIT_AS, &none);
	recorded_end(recorded, &to);
	setrlimit(RLIMIT_AS, &before);
	close(fd);
	assert_int_equal(to.losses.reasons[0].refusals, 1);
	assert_non_null(strstr(to.losses.reasons[0].reason, "out of memory for a copy"));
}

#define BIG_RING (512 << 20) /* so that a wrong size can lead outside all mapped memory */

static void put_chunk(void)
{
	struct span_chunk *chunk = chunk_pool_acquire();
	const struct span_batch part = { .began_ns = T0, .thread_id = 4242 };

	chunk->entry[chunk_acquire(chunk, 1)] = (struct span_entry){ .start_ns = T0, .duration = 1000 };
	chunk_pool_set_part(chunk, &part);
}

/* The memory of spans begins with the number of the newest site and the bytes of all sites. Then come the
 * sites, each after its size. Here the first site ends after the end of all sites, at the size of another
 * site. */
static void test_sites(void **state)
{
	enum { NEWEST = 1, BYTES = 20, FIRST = 12, NEXT = 200 << 20 };
	const uint32_t words[] = { NEWEST, BYTES, FIRST, 0, 0, 0, 0, 0, NEXT, 0 };
	struct collection to = { .samples = 0 };
	struct shared_ring shared;
	off_t spans;
	int fd;

	(void)state;
	put_instead = put_chunk;
	ring_size = BIG_RING;
	fd = run_and_kill(false);
	put_instead = NULL;
	ring_size = RING_BYTES;
	assert_true(shared_ring_open(&shared, fd));
	spans = (char *)shared.spans - (char *)shared.memory;
	shared_ring_close(&shared);
	assert_int_equal(pwrite(fd, words, sizeof(words), spans), sizeof(words));
	store_all(fd, 0, &to);
	close(fd);
	assert_int_equal(count("SELECT count(*) FROM span_log"), 1);
}

/* --- a process that runs ------------------------------------------------------------------ */

/* Reports that a turn is done, and waits until the test permits the next one. */
static void take_turn(int to_parent, int from_parent)
{
	char byte = 0;

	if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 1)
		_exit(1);
}

static void work_in_turns(int to_parent, int from_parent)
{
	const uint64_t trace[] = { 0x7f0000000123 };
	struct query_key key = { 1, 2 };
	struct thread_record *late;
	int fd = shared_ring_memory(shared_ring_size(RING_BYTES));

	ring = shared_ring_make(RING_BYTES, fd);
	if (!ring || write(to_parent, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	take_turn(to_parent, from_parent);
	put_thread(4242, "worker");
	put_samples(T0, FLUSHED, 5, key);
	take_turn(to_parent, from_parent);
	late = ring_reserve(ring, sizeof(*late));
	for (int i = 0; i < LATER; i++)
		put_sample((struct a_sample){
			.timestamp_ns = T0 + 1000000000 + (uint64_t)i, .trace = trace, .depth = 1 });
	take_turn(to_parent, from_parent);
	*late = (struct thread_record){ .thread_id = 4243, .name = "late" };
	ring_commit(ring, late, RECORD_THREAD);
	take_turn(to_parent, from_parent);
	_exit(0);
}

/* A process that works in turns. */
struct worker {
	pid_t process;
	int fd, to_parent[2], to_child[2];
	struct recorded *recorded;
};

static void begin_work(struct worker *worker, void (*work)(int to_parent, int from_parent))
{
	char path[64];
	int fd;

	set_modules(modules, 1);
	assert_int_equal(pipe(worker->to_parent) | pipe(worker->to_child), 0);
	worker->process = fork();
	if (!worker->process)
		work(worker->to_parent[1], worker->to_child[0]);
	assert_int_equal(read(worker->to_parent[0], &fd, sizeof(fd)), sizeof(fd));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)worker->process, fd);
	worker->fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(worker->fd >= 0);
	worker->recorded = recorded_open(worker->fd);
	assert_non_null(worker->recorded);
}

static void await_turn(struct worker *worker)
{
	char byte;

	assert_int_equal(read(worker->to_parent[0], &byte, 1), 1);
}

static void let_work(struct worker *worker)
{
	assert_int_equal(write(worker->to_child[1], "", 1), 1);
}

/* Returns the process's exit status. */
static int end_work(struct worker *worker, struct collection *to)
{
	int status;

	assert_int_equal(waitpid(worker->process, &status, 0), worker->process);
	recorded_end(worker->recorded, to);
	close(worker->fd);
	for (int i = 0; i < 2; i++) {
		close(worker->to_parent[i]);
		close(worker->to_child[i]);
	}
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The collector reads the ring of a running process, up to the first record that is not committed. */
static void test_running(void **state)
{
	static const int64_t expected[] = { 0, FLUSHED, FLUSHED, FLUSHED + LATER };
	struct collection to = { .file.path = trace_path };
	struct worker worker;

	(void)state;
	begin_work(&worker, work_in_turns);
	for (size_t turn = 0; turn < sizeof(expected) / sizeof(*expected); turn++) {
		await_turn(&worker);
		for (int i = 0; i < 2; i++)
			recorded_store(worker.recorded, &to);
		assert_int_equal(to.samples, expected[turn]);
		let_work(&worker);
	}
	assert_int_equal(end_work(&worker, &to), 0);
	assert_int_equal(to.samples, FLUSHED + LATER);
	assert_int_equal(count("SELECT count(*) FROM losses"), 0);
	assert_int_equal(count("SELECT count(*) FROM trace_log"), FLUSHED + LATER);
	assert_int_equal(count("SELECT count(*) FROM modules WHERE path = '/usr/lib/one.so'"), 1);
	assert_int_equal(count("SELECT count(*) FROM threads WHERE thread_name IN ('worker', 'late')"), 2);
	assert_intact(trace_path);
}

#define LABELS "{\"route\":\"users#show\"}"
#define SITE 7

static void put_labelled(uint64_t timestamp_ns)
{
	const uint64_t trace[] = { 0x7f0000000123 }, number = label_set_number(LABELS, strlen(LABELS));
	struct span_batch *batch = ring_reserve(ring, sizeof(*batch) + sizeof(batch->entry[0]));

	put_sample((struct a_sample){ .timestamp_ns = timestamp_ns,
	                              .thread_id = 4242,
	                              .trace = trace,
	                              .depth = 1,
	                              .fields = { { FIELD_LABELS, sizeof(number), &number } } });
	*batch = (struct span_batch){
		.first = timestamp_ns - T0 + 1, .began_ns = timestamp_ns, .thread_id = 4242, .entries = 1
	};
	batch->entry[0] = (struct span_entry){ .start_ns = timestamp_ns, .duration = 1000, .site = SITE };
	ring_commit(ring, batch, RECORD_SPANS);
}

/* Publishes the thread's name, the label set and the spans' site only once. */
static void tell_once(int to_parent, int from_parent)
{
	const size_t size = strlen(LABELS), name_size = strlen("checkout");
	int fd = shared_ring_memory(shared_ring_size(RING_BYTES));
	struct span_site_record *site;
	struct label_record *labels;

	ring = shared_ring_make(RING_BYTES, fd);
	if (!ring || write(to_parent, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	put_thread(4242, "worker");
	labels = ring_reserve(ring, sizeof(*labels) + size);
	*labels = (struct label_record){ .number = label_set_number(LABELS, size),
		                         .from_ns = T0,
		                         .size = (uint32_t)size };
	memcpy(labels->text, LABELS, size);
	ring_commit(ring, labels, RECORD_LABELS);
	site = ring_reserve(ring, sizeof(*site) + name_size);
	*site = (struct span_site_record){ .number = SITE, .name_size = (uint32_t)name_size };
	memcpy(site->text, "checkout", name_size);
	ring_commit(ring, site, RECORD_SPAN_SITE);
	for (uint64_t turn = 0; turn < 2; turn++) {
		put_labelled(T0 + turn * 1000000);
		take_turn(to_parent, from_parent);
	}
	_exit(shared_ring_plans_lost() != 0); /* nonzero: it has to publish plans again */
}

/* They are still known after the process was idle for long, and in a new file. */
static void test_told_once(void **state)
{
	struct collection to = { .file.path = trace_path };
	struct worker worker;

	(void)state;
	for (int has_other_file = 0; has_other_file < 2; has_other_file++) {
		begin_work(&worker, tell_once);
		for (int turn = 0; turn < 2; turn++) {
			await_turn(&worker);
			recorded_store(worker.recorded, &to);
			recorded_rest(worker.recorded);
			if (has_other_file && !turn)
				remove_trace();
			let_work(&worker);
		}
		assert_int_equal(end_work(&worker, &to), has_other_file);
		assert_int_equal(count("SELECT count(*) FROM trace_log WHERE thread_name = 'worker'"
		                       " AND labels ->> 'route' = 'users#show'"),
		                 2 - has_other_file);
		assert_int_equal(count("SELECT count(*) FROM span_log WHERE operation_name = 'checkout'"),
		                 2 - has_other_file);
		assert_intact(trace_path);
		remove_trace();
	}
}

static void check_lost_without_a_file(uint64_t expected, uint64_t unfinished)
{
	char *nowhere = in_folder("none/x.db");
	struct collection to = { .file.path = nowhere };
	const struct loss *reasons = to.losses.reasons;
	int fd = run_and_kill(unfinished != 0);

	recorded_end(recorded_open(fd), &to);
	close(fd);
	assert_int_equal(to.samples, 0);
	assert_int_equal(reasons[0].samples, unfinished ? unfinished : expected);
	assert_int_equal(reasons[1].samples, unfinished ? expected : 0);
	assert_non_null(strstr(reasons[unfinished != 0].reason, nowhere));
	assert_int_equal(reasons[2].first_ns, 0);
}

/* Without a file, all records count as lost, with a reason. */
static void test_no_file(void **state)
{
	(void)state;
	check_lost_without_a_file(FLUSHED + LATER, 1);
	put_instead = put_spans;
	check_lost_without_a_file(SPANS, 0);
	put_instead = put_chunk;
	check_lost_without_a_file(1, 0);
	put_instead = NULL;
}

static void test_foreign(void **state)
{
	struct collection to = { .samples = 0 };
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	(void)state;
	store_all(fd, 0, &to);
	close(fd);
	assert_int_equal(to.samples + to.queries, 0);
}

/* The head of the memory contains the ring's size, after the version. It must match the ring's own size. */
static void test_sizes(void **state)
{
	enum { SIZE_AT = 16, PAGE = 4096 };
	const int fd = run_and_kill(false);
	struct shared_ring shared;
	uint64_t size;

	(void)state;
	assert_int_equal(pread(fd, &size, sizeof(size), SIZE_AT), sizeof(size));
	assert_true(shared_ring_open(&shared, fd));
	assert_int_equal(ring_memory_bytes(ring_bytes(shared.ring)), size);
	shared_ring_close(&shared);
	/* None of these is both a whole number of pages and the ring's size. */
	const uint64_t wrong[] = { size + 1, size + 8, size - 8, size - PAGE, size + PAGE, 0, UINT64_MAX };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(pwrite(fd, &wrong[i], sizeof(size), SIZE_AT), sizeof(size));
		if (shared_ring_open(&shared, fd))
			fail_msg("a ring of %llu bytes was taken", (unsigned long long)wrong[i]);
	}
	assert_int_equal(pwrite(fd, &size, sizeof(size), SIZE_AT), sizeof(size));
	assert_true(shared_ring_open(&shared, fd));
	shared_ring_close(&shared);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spans_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_changed_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_truncated, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_page_taken_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_strict_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory_for_a_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sites, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_running, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_foreign, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sizes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
