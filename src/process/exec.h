/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that becomes another program.
 */
#ifndef QUERYPROF_PROCESS_EXEC_H
#define QUERYPROF_PROCESS_EXEC_H

/* The calling thread is about to become another program, which has no handler: no
 * signal of a timer is on its way to it afterwards. */
void sampler_before_exec(void);

#endif
