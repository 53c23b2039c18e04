/* SPDX-License-Identifier: Apache-2.0 */
#include "sqlite/locks/transactions.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "collect/state.h"
#include "handler/outside.h"
#include "handler/ring.h"
#include "query/account.h"
#include "query/cpu_clock.h"
#include "sqlite/locks/lock_holders.h"
#include "sqlite/locks/wal.h"
#include "sqlite/session/run.h"

static uint32_t next_number(void)
{
	static uint32_t newest;
	uint32_t number = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);

	return number ? number : __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
}

static void copy_text(char *to, size_t room, const char *text)
{
	size_t size = text ? strnlen(text, room - 1) : 0;

	memcpy(to, text ? text : "", size);
	to[size] = 0;
}

/* How long the run, which is in a call, has been in calls by then. */
static uint64_t executed_until(const struct run *run, uint64_t now)
{
	return run ? run->query.execution_ns + query_since(run->query.entered_ns, now) : 0;
}

static uint64_t cpu_now_ns(uint64_t now)
{
	return thread_current ? cpu_clock_until(thread_current, now) : 0;
}

static uint64_t executed_cpu_until(const struct run *run, uint64_t cpu_now)
{
	return run ? run->query.cpu_ns + query_since(run->query.entered_cpu_ns, cpu_now) : 0;
}

/* Other processes see it as open from now on. Release: who sees the number also sees the rest. */
static void publish(struct transaction *transaction)
{
	__atomic_store_n(&transaction->state->number, transaction->open.number, __ATOMIC_RELEASE);
}

__attribute__((no_sanitize("thread"))) /* it knows no fences */
static void
withdraw(struct transaction *transaction)
{
	__atomic_store_n(&transaction->state->number, 0, __ATOMIC_RELAXED);
	/* Before the state is overwritten. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

__attribute__((no_sanitize("thread"))) /* it knows no fences */
static void
begin(struct session *session, struct lock_file *file, const struct run *run)
{
	struct transaction *transaction = &session->transaction;
	uint32_t number = next_number();

	__atomic_store_n(&transaction->state->begun, number, __ATOMIC_RELAXED);
	/* Before the rest, for a copy that another process makes meanwhile. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	transaction->state->publish_after_ns = session->settings.log_queries
	                                               ? session->settings.log_queries_min_query_duration_ns
	                                               : UINT64_MAX;
	transaction->state->start_ns = lock_now_ns();
	transaction->start_cpu_ns = cpu_now_ns(transaction->state->start_ns);
	transaction->executed_cpu_ns = -(int64_t)executed_cpu_until(run, transaction->start_cpu_ns);
	transaction->account = thread_current->account;
	transaction->has_threads = transaction->was_told = false;
	transaction->end_ns = 0;
	transaction->file = file;
	transaction->written = NULL;
	for (int kind = HOLD_ANY + 1; kind < TRANSACTION_LOCKS; kind++)
		transaction->state->holds[kind] = (struct lock_hold){ .files = 0 };
	transaction->state->executed_ns = -(int64_t)executed_until(run, transaction->state->start_ns);
	transaction->state->statements = 0;
	transaction->open.has_ended = false;
	transaction->state->thread_id = thread_current->id;
	transaction->state->session = session->number;
	transaction->state->first = transaction->state->last = run ? run->query.key : (struct query_key){ 0 };
	copy_text(transaction->state->text, sizeof(transaction->state->text), run ? run->query.text : NULL);
	transaction->state->path[0] = 0;
	__atomic_store_n(&transaction->was_waited_for, false, __ATOMIC_RELAXED);
	outside_enter_transaction(thread_current, &transaction->open);
	/* Relaxed: a thread that waits for it reports only the number. */
	__atomic_store_n(&transaction->open.number, number, __ATOMIC_RELAXED);
	publish(transaction);
}

static void begin_hold(struct lock_hold *hold)
{
	if (hold->files++)
		return;
	hold->since_ns = lock_now_ns();
	if (!hold->first_ns)
		hold->first_ns = hold->since_ns;
}

static void end_hold(struct lock_hold *hold)
{
	if (!hold->files || --hold->files)
		return;
	hold->newest_ns = query_since(hold->since_ns, lock_now_ns());
	hold->total_ns += hold->newest_ns;
}

/* SQLite takes the WAL's write lock, sees that the transaction's snapshot is too old to write to,
 * releases the lock and returns SQLITE_BUSY: nothing could be written. With a rollback journal, a
 * run that ends this way has held its write lock while it waited for readers. */
static void forget_refused_hold(struct transaction *transaction, const struct run *run, int rc)
{
	struct lock_hold *writes = &transaction->state->holds[HOLD_WRITE];

	if ((rc & 0xff) != SQLITE_BUSY || writes->files || transaction->state->holds[HOLD_PENDING].first_ns ||
	    writes->since_ns < run->query.start_monotonic_ns)
		return;
	writes->total_ns -= writes->newest_ns;
	writes->newest_ns = 0;
}

static bool has_written(const struct transaction *transaction)
{
	return transaction->state->holds[HOLD_WRITE].files || transaction->state->holds[HOLD_WRITE].total_ns;
}

static uint64_t held_ns(const struct transaction *transaction, enum transaction_lock kind)
{
	const struct lock_hold *hold = &transaction->state->holds[kind];

	return hold->total_ns + (hold->files ? query_since(hold->since_ns, transaction->end_ns) : 0);
}

static void unlock(struct session *session, const struct run *run);

/* Whether the database has changed is known when the run ends. Of several files that one run has written to,
 * only the last one waits for that. */
static void note_written(struct transaction *transaction, struct lock_file *file)
{
	if (transaction->written && transaction->written != file)
		lock_file_committed(transaction->written, lock_now_ns());
	transaction->written = file;
}

void transaction_locks_change(struct session *session, unsigned before, unsigned after,
                              struct lock_file *file, const struct run *run)
{
	struct transaction *transaction = &session->transaction;
	unsigned comes = after & ~before, goes = before & ~after;

	if (comes && !thread_current)
		return;
	if (comes >> HOLD_ANY & 1) {
		const bool is_first = !transaction->state->holds[HOLD_ANY].files++;

		/* A transaction that ended in this run continues: SQLite tries again after a refusal. */
		if (is_first && !transaction->open.has_ended)
			begin(session, file, run);
		else if (is_first)
			publish(transaction);
		transaction->open.has_ended = false;
	}
	if (comes && (!transaction->state->path[0] || (comes >> HOLD_WRITE & 1 && !has_written(transaction))))
		copy_text(transaction->state->path, sizeof(transaction->state->path), lock_file_path(file));
	for (int kind = HOLD_ANY + 1; kind < TRANSACTION_LOCKS; kind++) {
		if (comes >> kind & 1)
			begin_hold(&transaction->state->holds[kind]);
		if (goes >> kind & 1)
			end_hold(&transaction->state->holds[kind]);
	}
	if (goes >> HOLD_WRITE & 1 && run)
		note_written(transaction, file);
	if (goes >> HOLD_ANY & 1)
		unlock(session, run);
}

/* --- its end ---------------------------------------------------------------------------- */

static bool rolls_back(const struct transaction *transaction, const struct run *run)
{
	/* A close rolls earlier writes back. Its own writes are a checkpoint. */
	if (run->kind == RUN_CLOSE)
		return transaction->state->holds[HOLD_WRITE].first_ns < run->query.start_monotonic_ns;
	return run->query.text && !strncasecmp(text_skip_comments(run->query.text), "ROLLBACK", 8);
}

static bool is_undone(const struct transaction *transaction, const struct run *run, int rc)
{
	return (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) ||
	       (run && rolls_back(transaction, run));
}

static enum transaction_outcome outcome_of(const struct transaction *transaction, const struct run *run,
                                           int rc)
{
	if (!has_written(transaction))
		return TRANSACTION_READ;
	return is_undone(transaction, run, rc) ? TRANSACTION_ROLLED_BACK : TRANSACTION_COMMITTED;
}

/* After a close, the entry of its file may be another file's. */
static void note_commit(struct transaction *transaction, const struct run *run, int rc)
{
	if (run->kind != RUN_CLOSE && !is_undone(transaction, run, rc))
		lock_file_committed(transaction->written, lock_now_ns());
	transaction->written = NULL;
}

static uint64_t between(uint64_t start, uint64_t end)
{
	return start && end > start ? end - start : 0;
}

static uint64_t clip(int64_t ns, uint64_t most)
{
	if (ns < 0)
		return 0;
	return (uint64_t)ns < most ? (uint64_t)ns : most;
}

static uint64_t idle_of(const struct transaction *transaction, uint64_t duration)
{
	return clip((int64_t)duration - transaction->state->executed_ns, duration);
}

/* Of a transaction on the calling thread alone that is long enough for the kernel's counts. */
static void fill_cpu(struct transaction_record *record, const struct transaction *transaction)
{
	struct thread *thread = thread_current;

	if (transaction->has_threads || thread->id != transaction->state->thread_id ||
	    transaction->end_cpu_ns == 0)
		return;
	account_read(thread);
	record->cpu_ns =
		clip((int64_t)(transaction->end_cpu_ns - transaction->start_cpu_ns), record->duration_ns);
	record->idle_cpu_ns = clip((int64_t)record->cpu_ns - transaction->executed_cpu_ns, record->idle_ns);
	record->run_delay_ns =
		clip((int64_t)account_since(&transaction->account, &thread->account).run_delay_ns,
	             record->duration_ns - record->cpu_ns);
	record->has_cpu = true;
}

static void write_record(const struct session *session, const struct run *run, int rc)
{
	const struct transaction *transaction = &session->transaction;
	const char *last = run && run->query.text ? run->query.text : "";
	size_t sizes[] = { strlen(transaction->state->path), strlen(transaction->state->text),
		           strnlen(last, TRANSACTION_TEXT_MAX - 1) };
	uint64_t duration = between(transaction->state->start_ns, transaction->end_ns);
	struct ring *ring = sampler_ring();
	struct transaction_record *record =
		ring ? ring_reserve(ring, sizeof(*record) + sizes[0] + sizes[1] + sizes[2]) : NULL;

	if (!record)
		return;
	*record = (struct transaction_record){
		.first = transaction->state->first,
		.last = run ? run->query.key : transaction->state->last,
		.start_realtime_ns = transaction->state->start_ns + thread_current->realtime_offset_ns,
		.duration_ns = duration,
		.write_ns = held_ns(transaction, HOLD_WRITE),
		.pending_ns = held_ns(transaction, HOLD_PENDING),
		.exclusive_ns = held_ns(transaction, HOLD_EXCLUSIVE),
		.idle_ns = idle_of(transaction, duration),
		.number = transaction->open.number,
		.session = session->number,
		.thread_id = transaction->state->thread_id,
		.statements = transaction->state->statements,
		.outcome = outcome_of(transaction, run, rc),
		.was_waited_for = transaction->was_waited_for,
		.database_size = (uint32_t)sizes[0],
		.first_size = (uint32_t)sizes[1],
		.last_size = (uint32_t)sizes[2],
	};
	fill_cpu(record, transaction);
	memcpy(record->text, transaction->state->path, sizes[0]);
	memcpy(record->text + sizes[0], transaction->state->text, sizes[1]);
	memcpy(record->text + sizes[0] + sizes[1], last, sizes[2]);
	ring_commit(ring, record, RECORD_TRANSACTION);
}

static void end(struct session *session, const struct run *run, int rc)
{
	struct transaction *transaction = &session->transaction;

	if (session->settings.log_queries && thread_current &&
	    (__atomic_load_n(&transaction->was_waited_for, __ATOMIC_RELAXED) ||
	     between(transaction->state->start_ns, transaction->end_ns) >=
	             session->settings.log_queries_min_query_duration_ns))
		write_record(session, run, rc);
	transaction->open.has_ended = false;
	__atomic_store_n(&transaction->open.number, 0, __ATOMIC_RELAXED);
	withdraw(transaction);
}

static void unlock(struct session *session, const struct run *run)
{
	struct transaction *transaction = &session->transaction;
	struct lock_hold *any = &transaction->state->holds[HOLD_ANY];

	if (!any->files || --any->files || !transaction->open.number)
		return;
	transaction->end_ns = lock_now_ns();
	transaction->ended_in_ns = executed_until(run, transaction->end_ns);
	transaction->end_cpu_ns = transaction->end_ns - transaction->state->start_ns >= ACCOUNT_VALID_NS
	                                  ? cpu_now_ns(transaction->end_ns)
	                                  : 0;
	transaction->ended_in_cpu_ns = executed_cpu_until(run, transaction->end_cpu_ns);
	/* It holds nothing, though the run may go on, and wait for a lock. */
	withdraw(transaction);
	/* The run knows how it ended; without a run it is unknown. */
	transaction->open.has_ended = true;
	if (!run)
		end(session, NULL, SQLITE_OK);
}

bool transaction_run_ends(struct session *session, const struct run *run, int rc)
{
	struct transaction *transaction = &session->transaction;
	bool is_waited_for = __atomic_load_n(&transaction->was_waited_for, __ATOMIC_RELAXED), is_first;

	forget_refused_hold(transaction, run, rc);
	if (transaction->written)
		note_commit(transaction, run, rc);
	transaction->state->statements++;
	if (__builtin_expect(transaction->author != NULL, 0))
		wal_name_author(transaction->author, run);
	if (transaction->open.has_ended) {
		transaction->state->executed_ns += (int64_t)transaction->ended_in_ns;
		transaction->executed_cpu_ns += (int64_t)transaction->ended_in_cpu_ns;
		end(session, run, rc);
		return is_waited_for;
	}
	transaction->state->executed_ns += (int64_t)run->query.execution_ns;
	transaction->executed_cpu_ns += (int64_t)run->query.cpu_ns;
	transaction->state->last = run->query.key;
	if (thread_current && transaction->open.slot != thread_current) {
		transaction->has_threads = true;
		outside_enter_transaction(thread_current, &transaction->open);
	}
	is_first = is_waited_for && !transaction->was_told;
	transaction->was_told = is_waited_for;
	return is_first;
}
