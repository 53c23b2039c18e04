/* SPDX-License-Identifier: Apache-2.0 */
#include "store/detach.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "collect/ring_reader.h"
#include "query/statement_stats.h"
#include "store/flusher_file.h"
#include "store/shared_ring.h"
#include "wire/record.h"
#include "wire/statement_record.h"

static struct {
	bool is_on;
	int connection; /* in the flusher's own table; -1: not kept */
} detached = { .connection = -1 };

bool detach_is_possible(void)
{
	return store_control.callbacks.leave && store_control.callbacks.leave(NULL);
}

/* Whether a connection is refused for want of a descriptor or of memory: the other process is there, or was.
 */
static bool is_short(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

/* Sends the request, and keeps the connection. In the host's table the host may close it, so it is not kept
 * there. False: there is no other process. */
static bool connect_again(void)
{
	if (!store_control.callbacks.leave(&detached.connection))
		return false;
	if (detached.connection < 0)
		return flusher.table_error || is_short(errno);
	if (flusher.table_error) {
		close(detached.connection);
		detached.connection = -1;
	}
	return true;
}

bool detach_begin(void)
{
	detached.connection = -1;
	if (!store_control.callbacks.leave || !connect_again())
		return false;
	detached.is_on = true;
	shared_ring_leave(true);
	flusher_clear_failure();
	return true;
}

bool detach_is_on(void)
{
	return detached.is_on;
}

/* A statement's text may be one part in so many of the ring. */
#define TEXT_SHARE 8

static int send_statement(void *unused, const struct statement_stats *stats)
{
	size_t most = ring_bytes(store_control.ring) / TEXT_SHARE;
	size_t database_size = strlen(stats->database) + 1, size = strlen(stats->text);
	bool is_cut = size > most;
	struct statement_record *record;

	(void)unused;
	if (is_cut)
		size = text_cut(stats->text, most);
	record = ring_reserve(store_control.ring, sizeof(*record) + size + 1 + database_size);
	if (!record)
		return ENOSPC; /* the next time */
	*record = (struct statement_record){
		.hash = stats->hash,
		.part = stats->part,
		.counts = *stats->counts,
		.text_size = (uint32_t)size + 1,
		.database_size = (uint32_t)database_size,
		.is_cut = stats->is_cut || is_cut,
	};
	memcpy(record->text, stats->text, size);
	record->text[size] = '\0';
	memcpy(record->text + size + 1, stats->database, database_size);
	ring_commit(store_control.ring, record, RECORD_STATEMENTS);
	return 0;
}

void detach_send_statements(void)
{
	statement_stats_next(send_statement, NULL);
	statement_stats_commit(true);
}

static void end(void)
{
	detached.is_on = false;
	shared_ring_leave(false);
}

bool detach_goes_on(void)
{
	struct pollfd polled = { .fd = detached.connection };

	if (detached.is_on && detached.connection < 0 && !flusher.table_error && !connect_again())
		end();
	if (detached.connection >= 0 && poll(&polled, 1, 0) > 0) {
		close(detached.connection);
		detached.connection = -1;
		end();
	}
	return detached.is_on;
}

void detach_begin_again(void)
{
	if (detached.is_on && !detach_begin())
		end();
}

void detach_reset_in_child(void)
{
	detached.is_on = false;
	detached.connection = -1;
}
