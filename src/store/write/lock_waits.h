/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of lock_waits and of transaction_log.
 */
#pragma once

#include <stddef.h>

#include "store/write/prepared.h"
#include "wire/lock_record.h"
#include "wire/transaction_record.h"

struct writer;

struct lock_writer {
	struct {
		struct prepared add_wait, lengthen, remove_open, add_transaction, remove_open_transaction;
	} sql;
};

extern const struct lock_writer lock_writer_new;

/* Stores one record. SQLITE_OK or the error. */
int lock_waits_add(struct writer *writer, const struct lock_wait_record *record, size_t size);
int transactions_add(struct writer *writer, const struct transaction_record *record, size_t size);
