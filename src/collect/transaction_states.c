/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/transaction_states.h"

#include <string.h>

#include "base/clock.h"
#include "collect/open_runs.h"
#include "handler/ring.h"
#include "wire/transaction_record.h"

struct shared_entries transaction_states = SHARED_ENTRIES(struct transaction_states, number);

/* --- copies: of a process that writes at any moment ----------------------------------------------- */

static uint32_t count_of(const struct transaction_states *copy)
{
	return shared_entries_count(&transaction_states, copy);
}

const struct transaction_state *transaction_states_next(void *copy, uint32_t *from)
{
	struct transaction_states *table = copy;

	while (*from < count_of(table)) {
		struct transaction_state *entry = &table->entries[(*from)++];

		if (!entry->number)
			continue;
		entry->text[sizeof(entry->text) - 1] = entry->path[sizeof(entry->path) - 1] = '\0';
		return entry;
	}
	return NULL;
}

/* --- rows: of a process that runs, or is gone ----------------------------------------------------- */

static bool is_open(const struct transaction_state *state, uint64_t until_ns, bool is_ended)
{
	const uint64_t least = is_ended ? 0 : OPEN_TRANSACTION_PUBLISHED_NS;
	uint64_t open_ns = until_ns - state->start_ns;

	return state->number && state->number == state->begun && state->start_ns < until_ns &&
	       state->publish_after_ns != UINT64_MAX && open_ns >= state->publish_after_ns &&
	       open_ns >= least;
}

bool transaction_states_has_remains(const void *copy, uint64_t until_ns, bool is_ended)
{
	const struct transaction_states *left = copy;

	for (uint32_t i = 0; i < count_of(left); i++)
		if (is_open(&left->entries[i], until_ns, is_ended))
			return true;
	return false;
}

static uint64_t held_ns(const struct lock_hold *hold, uint64_t until_ns)
{
	bool is_held = hold->files && hold->since_ns < until_ns;

	return hold->total_ns + (is_held ? until_ns - hold->since_ns : 0);
}

/* Its statements that have not ended have executed, too. */
static uint64_t idle_ns(const struct transaction_state *state, const void *runs, uint64_t until_ns)
{
	int64_t open_ns = (int64_t)(until_ns - state->start_ns);
	int64_t idle =
		open_ns - state->executed_ns - (int64_t)open_runs_executed_ns(runs, state->session, until_ns);

	return idle < 0 ? 0 : (uint64_t)(idle < open_ns ? idle : open_ns);
}

bool transaction_states_hand_over(void *copy, const void *runs, uint64_t until_ns, bool is_ended,
                                  struct ring *ring)
{
	struct transaction_states *left = copy;
	uint64_t offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < count_of(left); i++) {
		struct transaction_state *state = &left->entries[i];
		size_t path = strnlen(state->path, sizeof(state->path));
		size_t text = strnlen(state->text, sizeof(state->text));
		struct transaction_record *record;

		if (!is_open(state, until_ns, is_ended))
			continue;
		record = ring_try_reserve(ring, sizeof(*record) + path + text);
		if (!record)
			return false;
		*record = (struct transaction_record){
			.first = state->first,
			.last = state->last,
			.start_realtime_ns = state->start_ns + offset_ns,
			.duration_ns = until_ns - state->start_ns,
			.write_ns = held_ns(&state->holds[HOLD_WRITE], until_ns),
			.pending_ns = held_ns(&state->holds[HOLD_PENDING], until_ns),
			.exclusive_ns = held_ns(&state->holds[HOLD_EXCLUSIVE], until_ns),
			.idle_ns = idle_ns(state, runs, until_ns),
			.number = state->number,
			.session = state->session,
			.thread_id = state->thread_id,
			.statements = state->statements,
			.outcome = is_ended ? TRANSACTION_KILLED : TRANSACTION_OPEN,
			.database_size = (uint32_t)path,
			.first_size = (uint32_t)text,
		};
		memcpy(record->text, state->path, path);
		memcpy(record->text + path, state->text, text);
		ring_commit(ring, record, RECORD_TRANSACTION);
		state->number = 0;
	}
	return true;
}
