/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal handler: it determines the timer or request of a signal, and calls the code for it.
 */
#pragma once

#include <signal.h>

/* Installed with SA_SIGINFO | SA_RESTART | SA_ONSTACK. queryprof's timers carry the address of
 * their thread_timer as cookie in sival_ptr, and requests for a stack that of the thread's
 * response. */
void dispatch_signal(int signal, siginfo_t *info, void *ucontext);
