/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork(): what the child keeps of the sampler.
 */
#ifndef QUERYPROF_SAMPLER_FORK_H
#define QUERYPROF_SAMPLER_FORK_H

/* Installs the hooks, once. 0 or an errno value. */
int fork_init(void);

#endif
