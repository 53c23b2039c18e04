/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of connections and of their open statements.
 */
#pragma once

#include <stddef.h>

#include "store/write/prepared.h"
#include "wire/connection_record.h"
#include "wire/open_statements_record.h"

struct writer;

struct connection_writer {
	struct {
		struct prepared add, add_statements;
	} sql;
};

extern const struct connection_writer connection_writer_new;

/* Each stores one record. SQLITE_OK or the error. */
int connections_add(struct writer *writer, const struct connection_record *record);
int open_statements_add(struct writer *writer, const struct open_statements_record *record, size_t size);
