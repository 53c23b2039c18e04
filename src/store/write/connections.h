/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of connections.
 */
#pragma once

#include "store/write/prepared.h"
#include "wire/connection_record.h"

struct writer;

struct connection_writer {
	struct {
		struct prepared add;
	} sql;
};

void connection_writer_init(struct connection_writer *connections);

/* Stores one record. SQLITE_OK or the error. */
int connections_add(struct writer *writer, const struct connection_record *record);
