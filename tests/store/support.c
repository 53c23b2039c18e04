/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See support.h. Modules and sampler are simulated, because the store only reads from them.
 */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "handler/opcode.h"
#include "label/sets.h"
#include "modules/module_log.h"
#include "modules/modules.h"
#include "query/inspect.h"
#include "handler/budget.h"
#include "collect/state.h"
#include "timers/threads.h"

struct ring *ring;
int64_t flush_interval_ns = 20000000;
char folder[64], trace_path[72];

/* --- fakes ---------------------------------------------------------------------- */

static const struct module *map;
static size_t map_count;

/* No statement runs here. */
struct run_start opcode_start(const struct query_counts *counts)
{
	(void)counts;
	return (struct run_start){ 0 };
}

void set_modules(const struct module *modules, size_t count)
{
	map = modules;
	map_count = count;
}

bool modules_refresh(bool force)
{
	(void)force;
	return false;
}

bool query_inspect(const struct query_run *run, struct query_key key, struct query_view *view)
{
	(void)run, (void)key, (void)view;
	return false;
}

/* No runs are shown. */
void query_publish_open(void)
{
}

int64_t query_youngest_open_ns(void)
{
	return -1;
}

bool query_any_open(void)
{
	return false;
}

void query_view_free(struct query_view *view)
{
	(void)view;
}

uint32_t modules_generation(void)
{
	return 1;
}

const struct module *modules_find(uint64_t address, uint32_t generation)
{
	for (size_t i = 0; i < map_count; i++) {
		if (address >= map[i].start && address < map[i].end && map[i].born <= generation &&
		    generation < map[i].died)
			return &map[i];
	}
	return NULL;
}

/* The log of modules has every module of the map. */
void modules_log_to_nobody_in_child(void)
{
}

void modules_log_to(struct module_log *log)
{
	for (size_t i = 0; i < map_count; i++)
		module_log_add(log, &map[i]);
	module_log_end_generation(log, modules_generation());
}

char *label_set_text(uint64_t number)
{
	(void)number;
	return NULL;
}

void sampler_exclude_thread(void)
{
}

void sampler_include_thread(void)
{
}

void sampler_reap(void)
{
}

bool budget_update(const struct ring *for_samples)
{
	(void)for_samples;
	return false;
}

void budget_note_storing(uint64_t storing_ns, uint64_t stored)
{
	(void)storing_ns, (void)stored;
}

/* --- files ------------------------------------------------------------------------ */

static char all_folders[40] = "/tmp"; /* TMPDIR as it was */

int set_up(void **state)
{
	const char *where = getenv("TMPDIR");

	(void)state;
	if (where && strlen(where) < sizeof(all_folders))
		strcpy(all_folders, where);
	snprintf(folder, sizeof(folder), "%s/qp-test-store-XXXXXX", all_folders);
	if (!mkdtemp(folder))
		fail_msg("no temporary directory");
	snprintf(trace_path, sizeof(trace_path), "%s/x.db", folder);
	setenv("TMPDIR", folder, 1);
	return 0;
}

int tear_down(void **state)
{
	char command[128];

	(void)state;
	if (ring)
		stop_store();
	set_modules(NULL, 0);
	setenv("TMPDIR", all_folders, 1);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		fail_msg("cannot remove %s", folder);
	return 0;
}

static char *next_buffer(size_t *size)
{
	static char buffers[4][100000];
	static int turn;

	*size = sizeof(buffers[0]);
	return buffers[turn++ % 4];
}

char *in_folder(const char *name)
{
	size_t size;
	char *path = next_buffer(&size);

	snprintf(path, size, "%s/%s", folder, name);
	return path;
}

void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* --- the store ----------------------------------------------------------------------- */

void start_store_with_ring(const char *path, int64_t max_bytes, size_t ring_bytes)
{
	struct store_config config = { .path = path,
		                       .max_bytes = max_bytes,
		                       .flush_interval_ns = flush_interval_ns };

	ring = ring_create(ring_bytes);
	assert_non_null(ring);
	assert_int_equal(store_init(ring, &config), 0);
	store_start();
}

void start_store(const char *path, int64_t max_bytes)
{
	start_store_with_ring(path, max_bytes, 8 << 20);
}

void stop_store(void)
{
	store_shutdown();
	ring_destroy(ring);
	ring = NULL;
}

void configure_store(const char *path, int64_t max_bytes)
{
	struct store_config config = { .path = path,
		                       .max_bytes = max_bytes,
		                       .flush_interval_ns = flush_interval_ns };
	char *error;
	int code = store_configure(&config, &error);

	if (code)
		fail_msg("store_configure: %d, %s", code, error);
}

/* --- records --------------------------------------------------------------------------- */

bool put_sample(struct a_sample sample)
{
	size_t size = sizeof(struct sample_record) + sample.depth * sizeof(sample.trace[0]);
	struct sample_record *record;
	void *at;

	for (const struct a_field *field = sample.fields; field->tag; field++)
		size += SAMPLE_FIELD_BYTES(field->size);
	record = ring_reserve(ring, size);
	if (!record)
		return false;
	*record = (struct sample_record){
		.timestamp_ns = sample.timestamp_ns,
		.period_ns = sample.period_ns ? sample.period_ns : 10000000,
		.query = sample.query,
		.thread_id = sample.thread_id ? sample.thread_id : 4242,
		.weight = sample.weight ? sample.weight : 1,
		.generation = sample.generation ? sample.generation : 1,
		.cpu_id = sample.cpu_id,
		.depth = sample.depth,
		.type = sample.trace_type,
		.flags = sample.flags,
	};
	memcpy(record->addresses, sample.trace, sample.depth * sizeof(sample.trace[0]));
	at = record->addresses + sample.depth;
	for (const struct a_field *field = sample.fields; field->tag; field++)
		at = sample_field_put(record, at, field->tag, field->content, field->size);
	ring_commit(ring, record, RECORD_SAMPLE);
	return true;
}

void put_samples(uint64_t start_ns, size_t count, size_t stacks, struct query_key query)
{
	uint64_t trace[30];

	for (size_t i = 0; i < count; i++) {
		struct a_sample sample = {
			.timestamp_ns = start_ns + i * 1000, .query = query, .trace = trace, .depth = 30
		};

		for (size_t frame = 0; frame < 30; frame++)
			trace[frame] = 0x7f0000000000 + frame * 0x1000 + (start_ns / 1000 + i) % stacks;
		while (!put_sample(sample))
			nap();
	}
}

void put_thread(uint32_t thread_id, const char *name)
{
	struct thread_record *record = ring_reserve(ring, sizeof(*record));

	assert_non_null(record);
	*record = (struct thread_record){ .thread_id = thread_id };
	snprintf(record->name, sizeof(record->name), "%s", name);
	ring_commit(ring, record, RECORD_THREAD);
}

static size_t length(const char *text)
{
	return text ? strlen(text) : 0;
}

void put_start(struct query_key query, enum start_state state, const char *text)
{
	size_t size = strnlen(text, START_TEXT_MAX);
	struct start_record *start = ring_reserve(ring, sizeof(*start) + size);

	assert_non_null(start);
	*start = (struct start_record){
		.query = query,
		.run = { .state = state, .thread_id = 13, .realtime_ns = T0, .initial = query },
		.text_size = size,
	};
	memcpy(start->text, text, size);
	ring_commit(ring, start, RECORD_START);
}

void put_query(const struct a_query *query)
{
	const char *texts[] = { query->query_id, query->query, query->database, query->exception };
	struct query_record *record;
	size_t size = sizeof(*record);
	char *at;

	for (int i = 0; i < 4; i++)
		size += length(texts[i]);
	while (!(record = ring_reserve(ring, size)))
		nap();
	*record = query->record;
	record->query_id_size = (uint32_t)length(query->query_id);
	record->query_size = (uint32_t)length(query->query);
	record->database_size = (uint32_t)length(query->database);
	record->exception_size = (uint32_t)length(query->exception);
	at = record->text;
	for (int i = 0; i < 4; i++) {
		memcpy(at, texts[i] ? texts[i] : "", length(texts[i]));
		at += length(texts[i]);
	}
	ring_commit(ring, record, RECORD_QUERY);
}

/* --- queries ------------------------------------------------------------------------------ */

void drain(void)
{
	if (!store_drain(PATIENCE_MS))
		fail_msg("store_drain: not all was stored; %s", store_error());
}

bool has_error(void)
{
	char *error = store_error();

	free(error);
	return error != NULL;
}

char *ask_text(const char *sql)
{
	struct store_cursor *cursor;
	size_t room, size;
	char *text = next_buffer(&room), *error;
	const char *bytes;
	int code;

	cursor = store_select(sql, NULL, &error);
	if (!cursor)
		fail_msg("%s: %s", sql, error);
	code = store_step(cursor);
	if (code != 1)
		fail_msg("%s: %s", sql, code ? store_cursor_error(cursor) : "no row");
	bytes = store_column_bytes(cursor, 0, &size);
	snprintf(text, room, "%.*s", (int)size, bytes ? bytes : "(null)");
	store_close(cursor);
	return text;
}

int64_t ask(const char *sql)
{
	return strtoll(ask_text(sql), NULL, 10);
}

char *ask_file(const char *path, const char *sql)
{
	char command[1000];
	size_t room, size;
	char *text = next_buffer(&room);
	FILE *pipe;

	snprintf(command, sizeof(command), "sqlite3 '%s' \"%s\" 2>&1", path, sql);
	pipe = popen(command, "r");
	if (!pipe)
		fail_msg("cannot run sqlite3");
	size = fread(text, 1, room - 1, pipe);
	pclose(pipe);
	while (size && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	return text;
}

void assert_intact(const char *path)
{
	assert_string_equal(ask_file(path, "PRAGMA integrity_check"), "ok");
}
