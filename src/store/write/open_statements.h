/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of open_statements.
 */
#pragma once

#include <stddef.h>

#include "store/write/prepared.h"
#include "wire/open_statements_record.h"

struct writer;

struct open_statements_writer {
	struct {
		struct prepared add;
	} sql;
};

void open_statements_writer_init(struct open_statements_writer *open_statements);

/* Stores one record. SQLITE_OK or the error. */
int open_statements_add(struct writer *writer, const struct open_statements_record *record, size_t size);
