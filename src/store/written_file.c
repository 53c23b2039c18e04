/* SPDX-License-Identifier: Apache-2.0 */
#include "store/written_file.h"

#include <errno.h>

#include "store/control/control.h"
#include "store/write/retention.h"
#include "store/write/writer.h"

#define NS_PER_MS 1000000ll

/* While samples arrive. After a sync there is also a pause of this many times its duration, because the
 * host's own work needs a slow disk. */
#define SYNC_INTERVAL_NS (10000 * NS_PER_MS)
#define SYNC_PAUSE 10

bool written_file_is_over_bound(const struct written_file *file, struct writer *writer, int64_t *bytes)
{
	const int64_t most = file->max_bytes;

	*bytes = database_bytes(&writer->database, file->path);
	if (most <= 0 || *bytes <= most || *bytes <= RETENTION_MIN_BYTES)
		return false;
	/* Does not wait for another thread. */
	sqlite3_busy_timeout(writer->database.db, 0);
	sqlite3_wal_checkpoint_v2(writer->database.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	writer_wait_when_busy(writer);
	*bytes = database_bytes(&writer->database, file->path);
	return *bytes - retention_free_bytes(writer) > most + most / 16;
}

int64_t next_turn(int64_t start, int64_t times, int64_t least)
{
	int64_t end = control_now_ns(), pause = (end - start) * times;

	return end + (pause > least ? pause : least);
}

bool written_file_sync(struct written_file *file, struct writer *writer, bool is_last)
{
	int64_t start = control_now_ns();
	int error;

	if (!file->is_unsynced || (!is_last && start < file->sync_at_ns))
		return true;
	errno = 0;
	file->is_unsynced = writer_sync(writer) != SQLITE_OK;
	error = errno;
	file->sync_at_ns = next_turn(start, SYNC_PAUSE, SYNC_INTERVAL_NS);
	errno = error;
	return !file->is_unsynced;
}
