/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/losses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "store/write/threads.h"
#include "store/write/writer.h"

const struct loss_writer loss_writer_new = {
	.sql = {
		.add.sql = "INSERT OR REPLACE INTO losses (process, reason, first_ns, last_ns, samples, refusals) VALUES"
		           " (:process, :reason, :first_ns, :last_ns, :samples, :refusals)",
	},
};

static struct loss *find(struct losses *losses, const char *reason)
{
	struct loss *loss = losses->reasons;

	for (; loss < &losses->reasons[LOSS_REASONS - 1] && loss->first_ns; loss++)
		if (strncmp(loss->reason, reason, sizeof(loss->reason) - 1) == 0)
			return loss;
	if (!loss->first_ns) {
		const char *text = loss == &losses->reasons[LOSS_REASONS - 1] ? "other reasons" : reason;

		strncpy(loss->reason, text, sizeof(loss->reason) - 1);
		loss->first_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	}
	return loss;
}

void losses_note(struct losses *losses, const char *reason, uint64_t samples, uint64_t refusals)
{
	struct loss *loss;

	if (!samples && !refusals)
		return;
	loss = find(losses, reason);
	loss->last_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	if (!loss->samples && !loss->refusals) /* in the current file */
		loss->first_ns = loss->last_ns;
	loss->samples += samples;
	loss->refusals += refusals;
}

/* The counter's growth, if possible: a process that crashed may have written anything there. */
static uint64_t since(uint64_t *noted, uint64_t now)
{
	uint64_t before = *noted;

	*noted = now;
	return now > before ? now - before : 0;
}

void losses_note_refusals(struct losses *losses, const uint64_t counters[SAMPLER_COUNTERS],
                          struct refusals *noted)
{
	const int error = (int)counters[SAMPLER_TIMER_ERRNO];
	/* The kernel itself does not return these errors. */
	const char *who = error == EPERM || error == EACCES ? "a seccomp filter"
	                  : error == ENOSYS                 ? "the system or a seccomp filter"
	                                                    : "the system";
	char reason[LOSS_REASON_SIZE];

	snprintf(reason, sizeof(reason), "%s refused a timer: %s", who, strerror(error));
	losses_note(losses, reason, 0, since(&noted->timers, counters[SAMPLER_TIMERS_FAILED]));
	losses_note(losses, "there was no memory to follow a thread", 0,
	            since(&noted->threads, counters[SAMPLER_THREADS_FAILED]));
	losses_note(losses, "a connection could not be followed", 0,
	            since(&noted->sessions, counters[SAMPLER_SESSIONS_REFUSED]));
	losses_note(losses,
	            "memory: a SQLite library's allocator was not found, so its memory is not sampled", 0,
	            since(&noted->allocators, counters[SAMPLER_ALLOCATORS_UNKNOWN]));
	losses_note(losses, "memory: there was no space to follow a sampled block until it is freed", 0,
	            since(&noted->blocks, counters[SAMPLER_BLOCKS_LOST]));
}

void losses_note_dropped(struct losses *losses, uint64_t ring_dropped)
{
	uint64_t noted = losses->ring_dropped;

	losses->ring_dropped = ring_dropped;
	losses_note(losses, "the ring was full (see trace_log_ring_bytes)",
	            ring_dropped > noted ? ring_dropped - noted : 0, 0);
}

static bool waits(const struct loss *loss)
{
	return loss->samples != loss->stored_samples || loss->refusals != loss->stored_refusals;
}

bool losses_are_pending(const struct losses *losses)
{
	for (int i = 0; i < LOSS_REASONS; i++)
		if (waits(&losses->reasons[i]))
			return true;
	return false;
}

void losses_add_waiting(struct losses *to, const struct losses *from)
{
	for (int i = 0; i < LOSS_REASONS; i++) {
		const struct loss *loss = &from->reasons[i];
		char reason[LOSS_REASON_SIZE];

		memcpy(reason, loss->reason,
		       sizeof(reason) - 1); /* a process that may have crashed wrote it */
		reason[sizeof(reason) - 1] = '\0';
		losses_note(to, reason, loss->samples - loss->stored_samples,
		            loss->refusals - loss->stored_refusals);
	}
}

static int store_loss(const struct loss *loss, struct writer *writer)
{
	struct prepared *add;
	int64_t process = intern_process(writer);

	if (process < 0)
		return (int)-process;
	add = writer_bind(writer, &writer->losses->sql.add);
	bind_number(add, "process", process);
	bind_text(add, "reason", loss->reason, strnlen(loss->reason, sizeof(loss->reason)));
	bind_number(add, "first_ns", loss->first_ns);
	bind_number(add, "last_ns", loss->last_ns);
	bind_number(add, "samples", (int64_t)loss->samples);
	bind_number(add, "refusals", (int64_t)loss->refusals);
	return writer_run(writer, add);
}

/* The stored losses are in another file. The unstored ones are the newest. */
static void begin_file(struct losses *losses, int64_t identity)
{
	for (int i = 0; i < LOSS_REASONS; i++) {
		struct loss *loss = &losses->reasons[i];

		if (!loss->stored_samples && !loss->stored_refusals)
			continue;
		loss->samples -= loss->stored_samples;
		loss->refusals -= loss->stored_refusals;
		loss->stored_samples = loss->stored_refusals = 0;
		loss->first_ns = loss->last_ns;
	}
	losses->file = identity;
}

int losses_write(struct losses *losses, struct writer *writer)
{
	int code = SQLITE_OK;

	if (losses->file != writer->file_identity)
		begin_file(losses, writer->file_identity);
	for (int i = 0; !code && i < LOSS_REASONS; i++)
		if (waits(&losses->reasons[i]))
			code = store_loss(&losses->reasons[i], writer);
	return code;
}

void losses_stored(struct losses *losses)
{
	for (int i = 0; i < LOSS_REASONS; i++) {
		struct loss *loss = &losses->reasons[i];

		loss->stored_samples = loss->samples;
		loss->stored_refusals = loss->refusals;
	}
}
