/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/threads.h"

#include <stdio.h>
#include <string.h>

#include "base/task_file.h"
#include "store/write/writer.h"

struct known_thread {
	struct hash key;
	int64_t row; /* 0: not looked up yet */
	char name[20];
};

struct known_series {
	struct hash key;
	int64_t row, epoch;
};

const struct thread_writer thread_writer_new = {
	.known = HASH_TABLE_OF(struct known_thread, 1 << 15),
	.series = HASH_TABLE_OF(struct known_series, 1 << 15),
	.sql = {
		.find_process.sql = "SELECT id FROM processes WHERE hostname = :hostname AND process_id = :process_id"
		                    " AND start_time_ns = :start_time_ns",
		.add_process.sql = "INSERT INTO processes (hostname, process_id, start_time_ns, executable, script)"
		                   " VALUES (:hostname, :process_id, :start_time_ns, :executable, :script)",
		.find.sql = "SELECT id FROM threads WHERE process = :process AND thread_id = :thread_id"
		            " AND thread_name = :thread_name",
		.add.sql = "INSERT INTO threads (process, thread_id, thread_name) VALUES"
		           " (:process, :thread_id, :thread_name)",
		.newest.sql = "SELECT id FROM threads WHERE process = :process AND thread_id = :thread_id"
		              " ORDER BY id DESC LIMIT 1",
		.find_series.sql = "SELECT id FROM series WHERE thread = :thread AND trace_type = :trace_type"
		                   " AND period_ns = :period_ns AND stretch = :stretch",
		.add_series.sql = "INSERT INTO series (thread, trace_type, period_ns, stretch, epoch, unit) VALUES"
		                  " (:thread, :trace_type, :period_ns, :stretch, :epoch, :unit)",
		.touch_series.sql = "UPDATE series SET epoch = :epoch WHERE id = :id",
	},
};

static void forget_thread_row(void *context, void *entry)
{
	struct known_thread *thread = entry;

	(void)context;
	thread->row = 0;
}

void thread_writer_forget(struct thread_writer *threads)
{
	hash_table_each(&threads->known, forget_thread_row, NULL);
	hash_table_clear(&threads->series);
	threads->process = 0;
	threads->last.series = 0;
}

/* --- processes and threads ------------------------------------------------------ */

static struct prepared *bind_process(struct writer *writer, struct prepared *prepared)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_text(bind, "hostname", writer->identity.hostname, SIZE_MAX);
	bind_number(bind, "process_id", writer->identity.process_id);
	bind_number(bind, "start_time_ns", writer->identity.start_time_ns);
	return bind;
}

int64_t intern_process(struct writer *writer)
{
	struct thread_writer *threads = writer->threads;
	struct prepared *add;
	int64_t row;

	if (threads->process)
		return threads->process;
	row = writer_number(writer, bind_process(writer, &threads->sql.find_process));
	if (!row) {
		add = bind_process(writer, &threads->sql.add_process);
		bind_text(add, "executable", writer->identity.executable, SIZE_MAX);
		bind_text(add, "script", writer->identity.script, SIZE_MAX);
		row = writer_insert(writer, add);
	}
	if (row > 0)
		threads->process = row;
	return row;
}

static struct hash thread_key(uint32_t thread_id)
{
	uint64_t word = thread_id;

	return hash_words(&word, 1);
}

/* The kernel's name of a thread whose own record did not arrive. */
static void read_thread_name(uint32_t thread_id, char *name, size_t size)
{
	task_file_read(thread_id, "comm", name, size);
	name[strcspn(name, "\n")] = '\0';
}

static struct known_thread *add_thread(struct writer *writer, uint32_t thread_id)
{
	return hash_table_add(&writer->threads->known, thread_key(thread_id));
}

void intern_thread_name(struct writer *writer, const struct thread_record *record)
{
	struct known_thread *thread = hash_table_find(&writer->threads->known, thread_key(record->thread_id));

	if (!thread)
		thread = add_thread(writer, record->thread_id);
	if (!thread)
		return;
	/* The id may have belonged to another thread before. */
	thread->row = 0;
	memcpy(thread->name, record->name, sizeof(thread->name));
	thread->name[sizeof(thread->name) - 1] = '\0';
	writer->threads->last.series = 0;
}

/* The row of a thread whose name is known only from the file; 0: none. */
static int64_t find_newest_thread(struct writer *writer, int64_t process, uint32_t thread_id)
{
	struct prepared *find = writer_bind(writer, &writer->threads->sql.newest);

	bind_number(find, "process", process);
	bind_number(find, "thread_id", thread_id);
	return writer_number(writer, find);
}

static struct prepared *bind_thread(struct writer *writer, struct prepared *prepared, int64_t process,
                                    uint32_t thread_id, const char *name)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_number(bind, "process", process);
	bind_number(bind, "thread_id", thread_id);
	bind_text(bind, "thread_name", name, SIZE_MAX);
	return bind;
}

int64_t intern_thread(struct writer *writer, uint32_t thread_id)
{
	struct known_thread *thread = hash_table_find(&writer->threads->known, thread_key(thread_id));
	struct known_thread unknown = { .row = 0 };
	int64_t process = intern_process(writer), row;

	if (process < 0)
		return process;
	if (!thread) {
		thread = add_thread(writer, thread_id);
		if (!thread)
			thread = &unknown;
		if (writer->other)
			thread->row = find_newest_thread(writer, process, thread_id);
		else
			read_thread_name(thread_id, thread->name, sizeof(thread->name));
	}
	if (thread->row)
		return thread->row;
	row = writer_number(
		writer, bind_thread(writer, &writer->threads->sql.find, process, thread_id, thread->name));
	if (!row)
		row = writer_insert(writer, bind_thread(writer, &writer->threads->sql.add, process, thread_id,
		                                        thread->name));
	if (row > 0)
		thread->row = row;
	return row;
}

/* --- series --------------------------------------------------------------------- */

static int touch_series(struct writer *writer, struct known_series *series)
{
	struct prepared *touch = writer_bind(writer, &writer->threads->sql.touch_series);

	bind_number(touch, "epoch", writer->epoch);
	bind_number(touch, "id", series->row);
	series->epoch = writer->epoch;
	return writer_run(writer, touch);
}

/* The meaning of a row of series. A number without a type in this build gets a name and a unit
 * that no build has. */
struct series {
	int64_t thread;
	char type[16];
	const char *unit;
	uint64_t period_ns;
	uint32_t stretch;
};

static struct prepared *bind_series(struct writer *writer, struct prepared *prepared,
                                    const struct series *series)
{
	struct prepared *bind = writer_bind(writer, prepared);

	bind_number(bind, "thread", series->thread);
	bind_text(bind, "trace_type", series->type, SIZE_MAX);
	bind_number(bind, "period_ns", (int64_t)series->period_ns);
	bind_number(bind, "stretch", series->stretch);
	return bind;
}

static int64_t find_series(struct writer *writer, int64_t thread, unsigned number, uint64_t period_ns,
                           uint32_t stretch, struct known_series *known)
{
	const struct sample_type *type = sample_type_at(number);
	struct series series = { thread, "", type ? type->unit : UNIT_UNKNOWN, period_ns, stretch };
	struct prepared *add;

	if (type)
		snprintf(series.type, sizeof(series.type), "%s", type->name);
	else
		snprintf(series.type, sizeof(series.type), "Type%u", number);
	known->row = writer_number(writer, bind_series(writer, &writer->threads->sql.find_series, &series));
	if (known->row)
		return known->row;
	add = bind_series(writer, &writer->threads->sql.add_series, &series);
	bind_number(add, "epoch", writer->epoch);
	bind_text(add, "unit", series.unit, SIZE_MAX);
	known->row = writer_insert(writer, add);
	known->epoch = writer->epoch;
	return known->row;
}

int64_t intern_series(struct writer *writer, const struct sample_record *sample, uint32_t stretch)
{
	uint8_t type = sample->type;
	struct known_series *known, fresh = { .epoch = 0 };
	int64_t thread;
	struct hash key;
	int code;

	if (writer->threads->last.series && writer->threads->last.thread_id == sample->thread_id &&
	    writer->threads->last.type == type && writer->threads->last.period_ns == sample->period_ns &&
	    writer->threads->last.stretch == stretch)
		return writer->threads->last.series;
	thread = intern_thread(writer, sample->thread_id);
	if (thread < 0)
		return thread;
	key = hash_words((uint64_t[]){ (uint64_t)thread, type, sample->period_ns, stretch }, 4);
	known = hash_table_find(&writer->threads->series, key);
	if (!known) {
		if (find_series(writer, thread, type, sample->period_ns, stretch, &fresh) < 0)
			return fresh.row;
		known = hash_table_add(&writer->threads->series, key);
		if (known) {
			known->row = fresh.row;
			known->epoch = fresh.epoch;
		} else {
			known = &fresh;
		}
	}
	if (known->epoch != writer->epoch && (code = touch_series(writer, known)))
		return -code;
	writer->threads->last.thread_id = sample->thread_id;
	writer->threads->last.type = type;
	writer->threads->last.period_ns = sample->period_ns;
	writer->threads->last.stretch = stretch;
	writer->threads->last.series = known->row;
	return known->row;
}
