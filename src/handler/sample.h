/*
 * The signal handler: one expired timer becomes one record in the ring.
 */
#ifndef QUERYPROF_HANDLER_SAMPLE_H
#define QUERYPROF_HANDLER_SAMPLE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "handler/thread.h"

/* What becomes of every signal that reaches the handler. In the end
 * signals = stored + dropped + idle + asked + late + foreign + reentered. */
enum sample_counter {
	SAMPLE_SIGNALS,
	SAMPLE_STORED,    /* committed to the ring */
	SAMPLE_DROPPED,   /* the ring was full */
	SAMPLE_IDLE,      /* no query ran on the thread, or no period had ended yet */
	SAMPLE_ASKED,     /* answered with a stack, see thread_answer */
	SAMPLE_LATE,      /* of a timer that is no longer this thread's, or answered already */
	SAMPLE_FOREIGN,   /* not ours: handed to the handler that was there */
	SAMPLE_REENTERED, /* arrived inside the handler */
	SAMPLE_OVERRUNS,  /* periods that came on top of a stored sample's first */
	SAMPLE_CUT,       /* stored samples whose trace is truncated */
	SAMPLE_COUNTERS,
};
uint64_t sample_counter(enum sample_counter which);

/* Installed with SA_SIGINFO | SA_RESTART | SA_ONSTACK. Our timers carry the address of their
 * thread_timer as cookie in sival_ptr, and questions that of the thread's answer. */
void sample_on_signal(int signal, siginfo_t *info, void *ucontext);

/* What was installed for the signal before us; set before the handler is. One caller
 * at a time. */
void sample_set_previous(const struct sigaction *previous);

/* While disabled every timer that fires is disarmed as if no query ran, and
 * nothing is written to a ring. Disabled at first. */
void sample_enable(bool enabled);

/* Moves with each answer that a thread gives, and wakes the futex's sleepers. */
extern uint32_t sample_answers __attribute__((visibility("hidden")));

/* For a forked child: all counters start again from 0, and what other threads' handlers
 * had taken is free. No handler may run. */
void sample_forget(void);

#endif
