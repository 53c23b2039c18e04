/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(): what the child keeps of the sampler.
 */
#pragma once

/* For a ring whose memory is shared: `renew` is called first in the child, to give it memory
 * of its own, and to empty it. */
void sampler_at_fork(void (*renew)(void));

/* Installs the hooks, once. 0 or an errno value. */
int fork_init(void);

/* There are no hooks here: the process has another recorder, whose hooks also take the locks of
 * the store. Before fork_init(). */
void fork_disable(void);
