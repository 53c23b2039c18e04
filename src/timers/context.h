/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a thread's OpenTelemetry context, see handler/context.h.
 */
#pragma once

struct thread;

/* Finds the calling thread's variable, if it is not known yet and a module of the process has it.
 * Not in a handler, because it calls the loader. */
void context_follow(struct thread *thread);
