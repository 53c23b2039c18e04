/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of wal_log and of checkpoints.
 */
#pragma once

#include <stddef.h>

#include "store/write/prepared.h"
#include "wire/wal_record.h"

struct writer;

struct checkpoint_writer {
	struct {
		struct prepared add_event, add_checkpoint;
	} sql;
};

extern const struct checkpoint_writer checkpoint_writer_new;

/* Stores one record. SQLITE_OK or the error. */
int wal_events_add(struct writer *writer, const struct wal_record *record, size_t size);
int checkpoints_add(struct writer *writer, const struct checkpoint_record *record, size_t size);
