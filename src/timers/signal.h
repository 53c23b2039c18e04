/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal that the timers send, and the host that may want it.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The host is about to set the signal's action, to read it, or to make a descriptor for the
 * signals of `set`. True: done, with the result for its call; or with the set for it to use.
 * False: call the real function. Any thread, also in a signal handler; in a child of vfork() they
 * do nothing. */
bool sampler_host_sets_signal(int number, const struct sigaction *action, struct sigaction *before,
                              int *result);
bool sampler_host_reads_action(int number, struct sigaction *action);
bool sampler_host_reads_signal(const sigset_t *set, sigset_t *without);

/* Chooses the signal if there is none yet and installs the handler. 0 or an errno value. */
int signal_start(void);

/* The process, or a child of vfork(), is about to become another program, which ignores what this one
 * ignores. Async-signal-safe. */
void signal_before_exec(void);

/* Restores the handler, or takes another signal, if the host has replaced the handler unseen.
 * False: it could not be done now. */
bool sampler_keep_signal(void);

/* No signal of queryprof comes any more, on any thread: timers are stopped, and their pending
 * signals are discarded. The host is about to forbid the system calls that a handler needs. */
void signal_silence(void);
bool signal_is_silent(void);

/* The host did not: threads make timers again. */
void signal_speak_again(void);

/* All signals, bit number - 1, except those that a fault of the interrupted code raises.
 * Async-signal-safe. */
uint64_t signal_asynchronous(void);

/* The signals, bit number - 1, that are not blocked inside the handler. */
uint64_t signal_unblockable(void);
