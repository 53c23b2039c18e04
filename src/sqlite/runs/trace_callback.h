/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace callback: follows a connection's statements by sqlite3_trace_v2, for hosts whose steps
 * cannot be hooked.
 *
 * Its events tell when a statement starts and ends, not when it is left between two steps. So the tag
 * of such a run also names the owner of the connection's mutex: the query runs while its thread holds
 * it. If statements are stepped alternately on one thread, all count as the one that started last.
 */
#pragma once

#include <stdbool.h>

#include "sqlite/session/session.h"

/* Follows the session's connection so from now on. */
void session_set_trace_callback(struct session *session);

/* Takes the connection's only trace callback, and calls the host's from it, with the events in
 * `mask`. A second call replaces that. */
void trace_callback_set(struct session *session, unsigned mask,
                        int (*callback)(unsigned, void *, void *, void *), void *context);

/* Whether the calling thread's newest query is followed by the trace callback. */
bool trace_callback_runs(void);

/* The session ends: so does what the calling thread runs of it. */
void trace_callback_end(const struct session *session);
