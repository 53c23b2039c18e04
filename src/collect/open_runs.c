/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/open_runs.h"

#include <string.h>

#include "base/clock.h"
#include "handler/ring.h"
#include "wire/query_record.h"

struct shared_entries open_runs = SHARED_ENTRIES(struct open_runs, run.shown);

/* A library whose text is too long is unknown. It is nearly always that of the previous run. */
static void copy_name(char *to, size_t most, const char *name)
{
	size_t size;

	if (name && !strcmp(to, name))
		return;
	size = name ? strnlen(name, most) : most;
	*to = '\0';
	if (size < most)
		memcpy(to, name, size + 1);
}

void open_runs_describe(struct open_run *run, const struct run_start *start,
                        const struct open_run_description *text)
{
	struct open_run_entry *entry = (struct open_run_entry *)run;

	entry->described = run->key;
	entry->start = *start;
	entry->publish_after_ns = text->publish_after_ns;
	entry->has_threads = text->has_threads;
	entry->text_size = text->text ? (uint32_t)strnlen(text->text, sizeof(entry->text)) : 0;
	if (text->text)
		memcpy(entry->text, text->text, entry->text_size);
	copy_name(entry->database, sizeof(entry->database), text->database);
	copy_name(entry->library, sizeof(entry->library), text->library);
}

void open_runs_write_id(struct open_run *run, const char *query_id)
{
	struct open_run_entry *entry = (struct open_run_entry *)run;

	copy_name(entry->query_id, sizeof(entry->query_id), query_id);
}

void open_runs_forget_bytecode(struct open_run *run)
{
	((struct open_run_entry *)run)->start.bytecode = 0;
}

void open_runs_note_user_id(void)
{
	struct open_runs *table = (struct open_runs *)__atomic_load_n(&open_runs.here, __ATOMIC_ACQUIRE);

	if (table)
		__atomic_store_n(&table->had_user_ids, 1, __ATOMIC_RELAXED);
}

/* --- copies: of a process that writes at any moment, or was killed at any ----------------------------- */

static uint32_t count_of(const struct open_runs *copy)
{
	return shared_entries_count(&open_runs, copy);
}

static const char *name_in(char *name, size_t size)
{
	name[size - 1] = '\0';
	return *name ? name : NULL;
}

static struct open_run_texts texts_of(struct open_run_entry *entry)
{
	const bool is_cut = entry->text_size >= sizeof(entry->text);

	entry->text[is_cut ? sizeof(entry->text) - 1 : entry->text_size] = '\0';
	return (struct open_run_texts){
		.text = entry->text_size ? entry->text : NULL,
		.database = name_in(entry->database, sizeof(entry->database)),
		.library = name_in(entry->library, sizeof(entry->library)),
		.query_id = entry->run.has_id ? name_in(entry->query_id, sizeof(entry->query_id)) : NULL,
		.is_cut = is_cut,
	};
}

static bool is_same(struct query_key a, struct query_key b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

bool open_runs_find(void *memory, struct query_key key, struct open_run_texts *texts)
{
	struct open_runs *copy = memory;
	struct open_run_entry *entry = copy->entries, *end = entry + count_of(copy);

	while (entry < end && (!(entry->run.shown & 1) || !is_same(entry->run.key, key)))
		entry++;
	if (entry == end)
		return false;
	*texts = texts_of(entry);
	return true;
}

static struct run_start start_of(const struct open_run_entry *entry, uint64_t realtime_ns);

bool open_runs_next(void *memory, uint32_t *from, struct open_run_view *view)
{
	struct open_runs *copy = memory;

	while (*from < count_of(copy)) {
		struct open_run_entry *entry = &copy->entries[(*from)++];
		const struct run_start start = start_of(entry, 0);

		if (!(entry->run.shown & 1) || is_same(entry->run.key, (struct query_key){ 0 }))
			continue;
		*view = (struct open_run_view){ .key = entry->run.key,
			                        .initial = start.initial,
			                        .parent = start.parent,
			                        .start_ns = entry->run.start_ns,
			                        .entered_ns = entry->run.entered_ns,
			                        .execution_ns = entry->run.execution_ns,
			                        .thread_id = entry->run.thread_id,
			                        .has_threads = entry->has_threads != 0,
			                        .texts = texts_of(entry) };
		return true;
	}
	return false;
}

static bool is_open(const struct open_run_entry *entry, uint64_t until_ns)
{
	const struct open_run *run = &entry->run;

	return run->shown & 1 && (run->key.hi || run->key.lo) && run->start_ns < until_ns &&
	       entry->publish_after_ns != UINT64_MAX && until_ns - run->start_ns >= entry->publish_after_ns;
}

bool open_runs_has_remains(const void *memory, uint64_t until_ns)
{
	const struct open_runs *left = memory;

	for (uint32_t i = 0; i < count_of(left); i++)
		if (is_open(&left->entries[i], until_ns))
			return true;
	return false;
}

bool open_runs_had_user_ids(const void *memory)
{
	return ((const struct open_runs *)memory)->had_user_ids != 0;
}

/* A call that began after the end counts as 0. */
static uint64_t inside_of(const struct open_run *run, uint64_t until_ns)
{
	bool is_inside = run->entered_ns && run->entered_ns < until_ns;

	return run->execution_ns + (is_inside ? until_ns - run->entered_ns : 0);
}

uint64_t open_runs_executed_ns(const void *memory, uint32_t session, uint64_t until_ns)
{
	const struct open_runs *left = memory;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count_of(left); i++) {
		const struct open_run *run = &left->entries[i].run;

		if (run->shown & 1 && query_key_session(run->key) == session)
			sum += inside_of(run, until_ns);
	}
	return sum;
}

/* The time between its calls. */
static uint64_t outside_of(const struct open_run_entry *entry, uint64_t until_ns)
{
	const struct open_run *run = &entry->run;
	uint64_t open_ns = until_ns - run->start_ns, inside_ns = inside_of(run, until_ns);

	if (entry->has_threads)
		return 0;
	return inside_ns < open_ns ? open_ns - inside_ns : 0;
}

/* A run that began again from its description is inside no other one. */
static struct run_start start_of(const struct open_run_entry *entry, uint64_t realtime_ns)
{
	struct run_start start = entry->start;

	start.state = START_PUBLISHED;
	start.thread_id = entry->run.thread_id;
	start.realtime_ns = realtime_ns;
	if (!is_same(entry->described, entry->run.key)) {
		start.initial = entry->run.key;
		start.parent = (struct query_key){ 0 };
	}
	return start;
}

bool open_runs_hand_over(void *memory, uint64_t until_ns, struct ring *ring)
{
	struct open_runs *left = memory;
	uint64_t offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < count_of(left); i++) {
		struct open_run_entry *entry = &left->entries[i];
		uint32_t size = entry->text_size < START_TEXT_MAX ? entry->text_size : START_TEXT_MAX;
		struct start_record *record;

		if (!is_open(entry, until_ns))
			continue;
		record = ring_try_reserve(ring, sizeof(*record) + size);
		if (!record)
			return false;
		*record = (struct start_record){ .query = entry->run.key,
			                         .run = start_of(entry, entry->run.start_ns + offset_ns),
			                         .open_until_ns = until_ns + offset_ns,
			                         .outside_ns = outside_of(entry, until_ns),
			                         .text_size = size };
		memcpy(record->text, entry->text, size);
		ring_commit(ring, record, RECORD_START);
		entry->run.shown = 0;
	}
	return true;
}
