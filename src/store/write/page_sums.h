/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of page_io.
 */
#pragma once

#include "store/write/prepared.h"
#include "wire/page_record.h"

struct writer;

struct page_sum_writer {
	struct {
		struct prepared add;
	} sql;
};

extern const struct page_sum_writer page_sum_writer_new;

/* Stores one record. SQLITE_OK or the error. */
int page_sums_add(struct writer *writer, const struct page_record *record);
