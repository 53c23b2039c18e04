/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that becomes another program.
 */
#pragma once

/* The calling thread is about to run another program, which has no handler: afterwards no timer's
 * signal is in flight to it. */
void sampler_before_exec(void);
