/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is wrong with the file, the host continues, nobody else's data is touched, the loss is counted and
 * explained, and storing resumes when the cause is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/ring.h"
#include "wire/lock_record.h"
#include "wire/bytecode_record.h"
#include "wire/connection_record.h"
#include "wire/open_statements_record.h"
#include "wire/page_record.h"
#include "wire/transaction_record.h"
#include "wire/wal_record.h"
#include "queryprof.h"
#include "support.h"

#define KEY ((struct query_key){ 7, 7 })

static uint64_t next_time = T0;

/* Counters live as long as the process, so tests check the differences. */
static uint64_t stored_before, lost_before;

static int note_counters(void **state)
{
	set_up(state);
	stored_before = store_counter(STORE_SAMPLES);
	lost_before = store_counter(STORE_LOST);
	return 0;
}

static uint64_t stored(void)
{
	return store_counter(STORE_SAMPLES) - stored_before;
}

static uint64_t lost(void)
{
	return store_counter(STORE_LOST) - lost_before;
}

static void sample(size_t count)
{
	put_samples(next_time, count, 5, KEY);
	next_time += count * 1000;
}

/* Puts a sample; true if it is stored. */
static bool stores_again(void)
{
	uint64_t before = stored();

	sample(1);
	drain();
	return stored() > before;
}

static void write_file(const char *path, const char *text, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
}

/* The names and checksums of all files in the folder. */
static char *fingerprint(void)
{
	char command[200];
	static char results[2][4000];
	static int turn;
	char *result = results[turn++ % 2];
	FILE *pipe;
	size_t size;

	snprintf(command, sizeof(command), "cd '%s' && ls -A && md5sum *", folder);
	pipe = popen(command, "r");
	size = fread(result, 1, sizeof(results[0]) - 1, pipe);
	result[size] = '\0';
	pclose(pipe);
	return result;
}

static void assert_refused(const char *path, int code, const char *word)
{
	char *before = fingerprint(), *error;
	int got;

	start_store(path, 0);
	got = store_open(&error);
	if (got != code || !strstr(error, word) || !strstr(error, path))
		fail_msg("%s: %d, %s", path, got, error);
	free(error);
	sample(3);
	drain();
	assert_int_equal(lost(), 3);
	error = store_error();
	assert_non_null(strstr(error, word));
	free(error);
	stop_store();
	assert_string_equal(fingerprint(), before);
}

static void foreign_database_is_left_alone(void **state)
{
	(void)state;
	ask_file(in_folder("x.db"), "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
	assert_refused(in_folder("x.db"), QP_STORE, "not a trace file");
}

static void empty_files_are_taken(void **state)
{
	(void)state;
	write_file(in_folder("x.db"), "", 0);
	start_store(in_folder("x.db"), 0);
	sample(1);
	stop_store();
	/* A database without anything in it. */
	ask_file(in_folder("y.db"), "PRAGMA auto_vacuum = 2; PRAGMA user_version = 0");
	start_store(in_folder("y.db"), 0);
	sample(1);
	stop_store();
	assert_int_equal(stored(), 2);
}

static void text_file_is_left_alone(void **state)
{
	(void)state;
	write_file(in_folder("notes.txt"), "remember", 8);
	assert_refused(in_folder("notes.txt"), QP_STORE, "not a trace file");
}

static void newer_version_is_left_alone(void **state)
{
	(void)state;
	start_store(in_folder("x.db"), 0);
	sample(1);
	stop_store();
	ask_file(in_folder("x.db"), "PRAGMA user_version = 1000");
	lost_before = store_counter(STORE_LOST);
	assert_refused(in_folder("x.db"), QP_TOO_NEW, "newer");
}

static char *schema_of(const char *path)
{
	/* SQLite writes ALTER TABLE's columns without the schema's line breaks and comments. */
	return strdup(ask_file(
		path,
		"SELECT group_concat(name || ':' || coalesce((SELECT group_concat("
		"name || type || [notnull] || coalesce(dflt_value, '')) FROM pragma_table_info(s.name)), '')"
		" || iif(type = 'view', sql, ''), x'0a') FROM (SELECT * FROM sqlite_schema ORDER BY name) AS "
		"s"));
}

static void make_version(int version, const char *path)
{
	char identity[80];

	snprintf(identity, sizeof(identity), "PRAGMA application_id = 1364218438; PRAGMA user_version = %d",
	         version);
	ask_file(path, version == 1 ? ".read " SCHEMA_1 : ".read " SCHEMA_2);
	ask_file(path, identity);
	ask_file(path,
	         "INSERT INTO processes VALUES (1, 'host', 1, 2, '/bin/x'); INSERT INTO threads VALUES (1, "
	         "1, 3, 'main');"
	         "INSERT INTO series (id, thread, trace_type, period_ns, epoch) VALUES (1, 1, 'CPU', 10, 1); "
	         "INSERT INTO stacks VALUES (1, 0, 1, "
	         "'[1,2]');"
	         "INSERT INTO statements (id, hash, normalized_query_hash, is_cut, query) VALUES (1, 0, 4, "
	         "0, 'SELECT 1');"
	         "INSERT INTO queries (id, query_id, process, first_ns, last_ns, finished, statement, "
	         "result_rows)"
	         " VALUES (1, 'old', 1, 0, 9, 1, 1, 7); INSERT INTO samples (timestamp_ns, series, query, "
	         "stack, cpu_id, weight, truncated, size) VALUES (5, 1, 1, 1, 0, 3, 0, 0)");
}

static void bring_up(int version, const char *model)
{
	char name[16], *path, *upgraded;

	snprintf(name, sizeof(name), "old%d.db", version);
	path = strdup(in_folder(name));
	make_version(version, path);
	start_store(path, 0);
	sample(1);
	stop_store();
	upgraded = schema_of(path);
	assert_string_equal(upgraded, model);
	assert_string_equal(ask_file(path, "PRAGMA user_version"),
	                    ask_file(in_folder("x.db"), "PRAGMA user_version"));
	assert_string_equal(
		ask_file(path, "SELECT query, result_rows, prepare_time_ns, library_path, parent_query_id"
	                       " FROM query_log WHERE query_id = 'old'"),
		"SELECT 1|7|0||");
	/* The view computes the values of the old and of the new row. */
	assert_string_equal(ask_file(path, "SELECT value, unit FROM trace_log ORDER BY timestamp_ns"),
	                    "30|ns\n10000000|ns");
	assert_intact(path);
	free(upgraded);
	free(path);
}

static void older_versions_are_brought_up(void **state)
{
	char *made;

	(void)state;
	start_store(in_folder("x.db"), 0);
	sample(1);
	stop_store();
	made = schema_of(in_folder("x.db"));
	assert_non_null(strstr(made, "query_log:"));
	bring_up(1, made);
	bring_up(2, made);
	free(made);
}

/* The older process has the file open while another process upgrades it. */
static void older_process_goes_on_writing(void **state)
{
	(void)state;
	make_version(2, in_folder("x.db"));
	start_store(in_folder("x.db"), 0);
	sample(1);
	drain();
	ask_file(in_folder("x.db"),
	         "INSERT INTO series (thread, trace_type, period_ns, epoch) VALUES (1, 'Real', 100, 1);"
	         "INSERT INTO samples (timestamp_ns, series, query, stack, cpu_id, weight, truncated, size)"
	         " SELECT 6, max(id), 0, 1, 0, 2, 0, 0 FROM series");
	assert_string_equal(
		ask_text("SELECT trace_type || value || unit FROM trace_log WHERE timestamp_ns = 6"),
		"Real200ns");
}

/* The file has a view with the name of a table of the schema. */
static void older_version_that_is_none_is_refused(void **state)
{
	(void)state;
	make_version(1, in_folder("x.db"));
	ask_file(in_folder("x.db"), "CREATE VIEW names AS SELECT 1 AS id, 'x' AS name");
	assert_refused(in_folder("x.db"), QP_STORE, "x.db");
}

static void directory_is_refused(void **state)
{
	(void)state;
	mkdir(in_folder("x.db"), 0700);
	assert_refused(in_folder("x.db"), QP_STORE, "directory");
}

static void damaged_file_is_no_crash(void **state)
{
	char *error = NULL, *path = strdup(in_folder("x.db"));
	FILE *file;

	(void)state;
	start_store(path, 0);
	sample(2000);
	stop_store();
	file = fopen(path, "r+");
	fseek(file, 4096, SEEK_SET);
	for (int i = 0; i < 40000; i++)
		fputc(i * 31 & 255, file);
	fclose(file);
	start_store(path, 0);
	lost_before = store_counter(STORE_LOST);
	sample(10);
	drain();
	assert_int_equal(lost(), 10);
	error = store_error();
	assert_non_null(error);
	free(error);
	stop_store();
	free(path);
}

static void folder_that_comes_later(void **state)
{
	char *path = strdup(in_folder("sub/x.db")), *error;

	(void)state;
	start_store(path, 0);
	sample(5);
	drain();
	assert_int_equal(stored(), 0);
	assert_int_equal(lost(), 5);
	error = store_error();
	assert_non_null(strstr(error, strerror(ENOENT)));
	free(error);
	mkdir(in_folder("sub"), 0700);
	assert_eventually(stores_again());
	assert_false(has_error());
	stop_store();
	assert_intact(path);
	free(path);
}

/* Puts nine rows that count as lost, samples included, and a plan that is published again. They make one
 * batch, because the flusher stops at the first record, which is committed last. */
static void put_other_rows(void)
{
	static const struct {
		unsigned kind;
		size_t size;
	} records[] = {
		{ RECORD_LOCK_WAIT, sizeof(struct lock_wait_record) },
		{ RECORD_LOCK_WAIT, sizeof(struct lock_wait_record) },
		{ RECORD_TRANSACTION, sizeof(struct transaction_record) },
		{ RECORD_WAL, sizeof(struct wal_record) },
		{ RECORD_CHECKPOINT, sizeof(struct checkpoint_record) },
		{ RECORD_OPEN_STATEMENTS, sizeof(struct open_statements_record) },
		{ RECORD_CONNECTION, sizeof(struct connection_record) },
		{ RECORD_PAGE_IO, sizeof(struct page_record) },
		{ RECORD_BYTECODE, sizeof(struct bytecode_record) },
	};
	void *first = NULL;

	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
		void *record = ring_reserve(ring, records[i].size);

		assert_non_null(record);
		memset(record, 0, records[i].size);
		if (i)
			ring_commit(ring, record, records[i].kind);
		else
			first = record;
	}
	sample(2);
	ring_commit(ring, first, records[0].kind);
}

/* First there is no file, then the file refuses a row. */
static void all_kinds_of_rows_are_counted_as_lost(void **state)
{
	char *path = strdup(in_folder("x.db"));
	uint64_t plans = store_counter(STORE_PLANS_LOST);

	(void)state;
	mkdir(path, 0700);
	start_store(path, 0);
	put_other_rows();
	drain();
	assert_int_equal(lost(), 9);
	assert_int_equal(store_counter(STORE_PLANS_LOST) - plans, 1);
	rmdir(path);
	assert_eventually(stores_again());
	lost_before = store_counter(STORE_LOST);
	put_other_rows();
	drain();
	assert_int_equal(lost(), 0);
	assert_int_equal(store_counter(STORE_PLANS_LOST) - plans, 1);
	ask_file(path, "DELETE FROM samples; CREATE UNIQUE INDEX refuse ON samples (series)");
	put_other_rows();
	drain();
	assert_int_equal(lost(), 9);
	assert_int_equal(store_counter(STORE_PLANS_LOST) - plans, 2);
	stop_store();
	free(path);
}

static void deleted_file_is_made_again(void **state)
{
	char *path = strdup(in_folder("x.db"));

	(void)state;
	start_store(path, 0);
	put_thread(4242, "keeps its name");
	sample(5);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 5);
	unlink(path);
	unlink(in_folder("x.db-wal"));
	unlink(in_folder("x.db-shm"));
	sample(7);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 7);
	assert_string_equal(ask_text("SELECT thread_name FROM trace_log"), "keeps its name");
	assert_int_equal(lost(), 0);
	stop_store();
	assert_string_equal(ask_file(path, "SELECT count(*) FROM trace_log WHERE trace LIKE '[%'"), "7");
	assert_intact(path);
	free(path);
}

/* Runs as another user because root may write everywhere. */
static void in_child_as_nobody(void (*test)(void))
{
	int status;
	pid_t child;

	chmod(folder, 0777);
	child = fork();
	if (child == 0) {
		if (getuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
			_exit(3);
		test();
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);              \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)

static void test_read_only_folder(void)
{
	char *error;

	mkdir(in_folder("ro"), 0500);
	start_store(in_folder("ro/x.db"), 0);
	sample(4);
	CHECK(store_drain(PATIENCE_MS));
	CHECK(lost() == 4);
	error = store_error();
	CHECK(error && strstr(error, strerror(EACCES)));
	chmod(in_folder("ro"), 0700);
	for (int i = 0; i < 1000 && !stores_again(); i++)
		nap();
	CHECK(stored() > 0);
	CHECK(!has_error());
	stop_store();
}

static void read_only_folder(void **state)
{
	(void)state;
	in_child_as_nobody(test_read_only_folder);
}

static void full_disk(void **state)
{
	char *disk = strdup(in_folder("disk")), *path = strdup(in_folder("disk/x.db")), *error;

	(void)state;
	mkdir(disk, 0700);
	if (mount("tmpfs", disk, "tmpfs", 0, "size=2m")) {
		print_message("no right to mount: skipped\n");
		free(disk);
		free(path);
		skip();
	}
	start_store(path, 0);
	for (int i = 0; i < 200 && !(lost() && has_error()); i++) {
		sample(5000);
		drain();
	}
	error = store_error();
	if (!lost() || !error) {
		umount2(disk, MNT_DETACH);
		fail_msg("2 MB never became full: %llu stored", (unsigned long long)stored());
	}
	free(error);
	assert_int_equal(mount("tmpfs", disk, "tmpfs", MS_REMOUNT, "size=200m"), 0);
	assert_eventually(stores_again());
	assert_false(has_error());
	stop_store();
	assert_intact(path);
	assert_int_equal(atoll(ask_file(path, "SELECT count(*) FROM samples")), stored());
	umount2(disk, MNT_DETACH);
	free(disk);
	free(path);
}

/* SIGXFSZ would end the process, so it must not reach the host. */
static void test_file_size_limit(void)
{
	struct rlimit limit = { 600 * 1024, RLIM_INFINITY };

	setrlimit(RLIMIT_FSIZE, &limit);
	start_store(in_folder("x.db"), 0);
	for (int i = 0; i < 200 && !(lost() && has_error()); i++) {
		sample(5000);
		CHECK(store_drain(PATIENCE_MS));
	}
	CHECK(lost() > 0);
	CHECK(has_error());
	limit.rlim_cur = RLIM_INFINITY;
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 1000 && !stores_again(); i++)
		nap();
	CHECK(!has_error());
	stop_store();
	CHECK(!strcmp(ask_file(in_folder("x.db"), "PRAGMA integrity_check"), "ok"));
}

static void file_size_limit(void **state)
{
	(void)state;
	in_child_as_nobody(test_file_size_limit);
}

static void configure_keeps_the_old_file_on_failure(void **state)
{
	struct store_config config = { .path = "/proc/nothing/x.db", .flush_interval_ns = 20000000 };
	char *first = strdup(in_folder("a.db")), *second = strdup(in_folder("b.db")), *error, *path;

	(void)state;
	start_store(first, 0);
	sample(3);
	assert_int_equal(store_configure(&config, &error), QP_STORE);
	assert_non_null(error);
	free(error);
	sample(4);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 7);
	path = store_path();
	assert_string_equal(path, first);
	free(path);
	/* Records that wait in the ring go to the old file. */
	sample(2);
	configure_store(second, 0);
	sample(1);
	drain();
	assert_int_equal(ask("SELECT count(*) FROM trace_log"), 1);
	stop_store();
	assert_string_equal(ask_file(first, "SELECT count(*) FROM trace_log"), "9");
	assert_string_equal(ask_file(second, "SELECT count(*) FROM trace_log"), "1");
	free(first);
	free(second);
}

static void mode_is_private_whatever_the_umask(void **state)
{
	const char *names[] = { "x.db", "x.db-wal", "x.db-shm" };
	mode_t masks[] = { 0, 0277, 0777 };
	struct stat status;

	(void)state;
	for (size_t m = 0; m < 3; m++) {
		mode_t old = umask(masks[m]);

		start_store(in_folder("x.db"), 0);
		sample(1);
		drain();
		for (int i = 0; i < 3; i++) {
			if (stat(in_folder(names[i]), &status) || (status.st_mode & 0777) != 0600)
				fail_msg("%s: %o", names[i], status.st_mode & 0777);
		}
		stop_store();
		umask(old);
		unlink(in_folder("x.db"));
	}
}

static void locked_by_another_program(void **state)
{
	char *path = strdup(in_folder("x.db")), command[300];
	const size_t bytes = 1 << 18;
	uint64_t total = 1;
	FILE *other;

	(void)state;
	start_store_with_ring(path, 0, bytes);
	sample(1);
	drain();
	snprintf(command, sizeof(command), "sqlite3 '%s' > /dev/null", path);
	other = popen(command, "w");
	fprintf(other, "BEGIN IMMEDIATE;\n.shell touch '%s/locked'\n", folder);
	fflush(other);
	assert_eventually(access(in_folder("locked"), F_OK) == 0);
	for (; ring_head(ring) - ring_tail(ring) < bytes / 8 * 5; total++)
		sample(1);
	/* The records are neither stored nor lost. They wait in the ring, even after the flusher found the
	 * file locked. */
	assert_eventually(has_error());
	assert_true(store_waits_for_file());
	assert_false(store_drain(300));
	assert_true(store_waits_for_file());
	assert_int_equal(lost(), 0);
	assert_int_equal(stored(), 1);
	fprintf(other, "ROLLBACK;\n.quit\n");
	pclose(other);
	drain();
	assert_false(store_waits_for_file());
	assert_int_equal(stored(), total);
	assert_eventually(!has_error());
	stop_store();
	free(path);
}

static void ring_stays_open_while_locked(void **state)
{
	char *path = strdup(in_folder("x.db")), command[300];
	uint64_t total = 0;
	FILE *other;

	(void)state;
	start_store_with_ring(path, 0, 65536);
	sample(1);
	drain();
	snprintf(command, sizeof(command), "sqlite3 '%s' > /dev/null", path);
	other = popen(command, "w");
	fprintf(other, "BEGIN IMMEDIATE;\n.shell touch '%s/locked'\n", folder);
	fflush(other);
	assert_eventually(access(in_folder("locked"), F_OK) == 0);
	/* put_samples() waits for room, and would wait for ever if the flusher made none. */
	for (; total < 3000; total += 100)
		sample(100);
	assert_true(lost() > 0);
	fprintf(other, "ROLLBACK;\n.quit\n");
	pclose(other);
	drain();
	assert_int_equal(stored() + lost(), total + 1);
	stop_store();
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, note_counters, tear_down)
		/* Tests that fork come first because they need a process that has not used SQLite. */
		TEST(read_only_folder),
		TEST(file_size_limit),
		TEST(foreign_database_is_left_alone),
		TEST(empty_files_are_taken),
		TEST(text_file_is_left_alone),
		TEST(newer_version_is_left_alone),
		TEST(older_versions_are_brought_up),
		TEST(older_process_goes_on_writing),
		TEST(older_version_that_is_none_is_refused),
		TEST(directory_is_refused),
		TEST(damaged_file_is_no_crash),
		TEST(folder_that_comes_later),
		TEST(all_kinds_of_rows_are_counted_as_lost),
		TEST(deleted_file_is_made_again),
		TEST(full_disk),
		TEST(configure_keeps_the_old_file_on_failure),
		TEST(mode_is_private_whatever_the_umask),
		TEST(locked_by_another_program),
		TEST(ring_stays_open_while_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
