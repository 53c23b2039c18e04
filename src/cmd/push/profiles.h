/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New rows of a trace file as profiles: in OTLP, with spans as traces, for an OpenTelemetry collector; or in
 * pprof's format, for Pyroscope. These targets count each request, so a piece that is repeated because its
 * response was lost may count twice. Repeated spans and profiles of Pyroscope have the same id.
 */
#pragma once

#include "cmd/push/clickhouse.h"

/* url: the server's address, to which the paths are appended. A command_result. */
int push_otlp_begin(const char *url, bool is_zstd);
int push_pyroscope_begin(const char *url, bool is_zstd);
void push_profiles_end(void);

/* The same as push_clickhouse_read() and push_clickhouse_send(). */
int push_profiles_read(sqlite3 *db, const char *path, const struct push_position *since,
                       const struct push_position *until, const char *service, bool is_counted,
                       struct push_stacks *stacks, struct push_batch *batch);
int push_profiles_send(void);

const char *push_profiles_name(enum push_table table);
