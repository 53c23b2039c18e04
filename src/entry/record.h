/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agreement of `queryprof record` and the library that it preloads: the settings
 * in the environment and the trace file, which the command makes and the library writes.
 * The library carries this text so that the command can find it there, without running
 * any of it.
 */
#ifndef QUERYPROF_ENTRY_RECORD_H
#define QUERYPROF_ENTRY_RECORD_H

#include "queryprof.h"
#include "store/file/database.h"

#define RECORD_NUMBER_TEXT_(number) #number
#define RECORD_NUMBER_TEXT(number) RECORD_NUMBER_TEXT_(number)
#define RECORD_AGREEMENT                                                                                     \
	"queryprof record: version " QUERYPROF_VERSION                                                       \
	", trace file " RECORD_NUMBER_TEXT(STORE_SCHEMA_VERSION)

#endif
