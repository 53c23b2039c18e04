/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a batch as a virtual table.
 */
#ifndef QUERYPROF_STORE_WRITE_SAMPLE_SOURCE_H
#define QUERYPROF_STORE_WRITE_SAMPLE_SOURCE_H

#include "store/columns.h"
#include "store/write/row_source.h"

/* The columns of samples, in the order of store/columns.h. */
#define SAMPLE_NAME_STORED(name, type, definition, flags, value) ", " #name
#define SAMPLE_NAME_FILED(name, type, definition, value) ", " #name
#define SAMPLE_NOTHING(...)
#define SAMPLE_ROW_COLUMNS                                                                                   \
	"timestamp_ns" TRACE_LOG_COLUMNS(SAMPLE_NAME_STORED, SAMPLE_NAME_FILED, SAMPLE_NOTHING,              \
	                                 SAMPLE_NOTHING)

/* Its memory is a struct writer. */
extern const struct row_source sample_source;

#endif
