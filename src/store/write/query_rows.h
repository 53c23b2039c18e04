/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a batch's queries. They are gathered from records, and each is written once at the batch's end.
 * So a query that begins and ends in one batch is a single insert, and the text that its start published is
 * not stored. A record stays in the ring until then.
 */
#pragma once

#include "store/write/queries.h"

/* Inside a transaction: stores the record's content. SQLITE_OK or the error. */
int query_rows_add_start(struct writer *writer, const struct start_record *record);
int query_rows_add(struct writer *writer, const struct query_record *record);

/* Writes the gathered rows. SQLITE_OK or the error. */
int query_rows_write(struct writer *writer);
