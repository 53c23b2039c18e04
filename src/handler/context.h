/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenTelemetry's thread context (OTEP 4947): an instrumented program publishes, in the
 * thread-local variable otel_thread_ctx_v1, a pointer to a record of the ids that the thread
 * works for. timers/context.c finds the variable.
 */
#pragma once

#include "handler/thread.h"

/* The context that the calling thread has published; all zero: none, or none that is valid.
 * Async-signal-safe. Neither the variable nor the record is trusted to be readable. */
void context_read(const struct thread *thread, struct trace_context *context);
