/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint of a WAL: what it copied, for how long it wrote and waited, and what stopped it.
 */
#pragma once

#include "sqlite/locks/lock_holders.h"
#include "sqlite/locks/wal_index.h"

struct checkpoint {
	bool is_open;
	uint64_t start_ns, start_cpu_ns;
	uint64_t write_ns, wal_sync_ns, database_sync_ns, bytes;
	uint64_t refused_ns; /* since when it is stopped; 0: it is not */
	uint64_t stopped_ns;
	struct wal_index begin, restart; /* and when all frames were copied, before the WAL begins again */
	bool wants_writer, wants_restart, is_truncating;
	uint32_t origin, obstacle, mark, mark_frame;
	int result;
	struct lock_holder holder;
	uint64_t holder_since_ns;
	char holder_text[LOCK_TEXT_MAX];
};

/* In a thread that is known. `origin`: an enum of wire/wal_record.h. */
void checkpoint_begin(struct checkpoint *checkpoint, const struct wal_call *call, uint32_t origin);

/* It was refused these locks. */
void checkpoint_refused(struct checkpoint *checkpoint, const struct wal_call *call, int first, int count);

/* It has requested further locks, and got `rc`. */
void checkpoint_locked(struct checkpoint *checkpoint, const struct wal_call *call, int first, int count,
                       int rc);

/* Writes its record, if it is to have one. `end`: the index that it has left. */
void checkpoint_end(struct checkpoint *checkpoint, const struct wal_call *call, const struct wal_index *end,
                    uint32_t page_size, uint32_t session);
