/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that are not queryprof's go to the handler that the host has set.
 */
#pragma once

#include <signal.h>

/* The host's action for the signal. One caller at a time; handlers may interrupt it and run concurrently. */
void forward_set(const struct sigaction *action);

/* Acts as the host has set it, with two differences: system calls restart although the host may
 * not have set SA_RESTART, and its handler runs on the alternate stack if there is
 * one. The handler may leave by a longjmp. */
void forward_signal(int signal, siginfo_t *info, void *ucontext);
