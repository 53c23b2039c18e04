/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites: the places of the host's code where spans begin. A site gets its number when its first span
 * begins; the meaning of the number goes through the ring, once. The host's memory is read only at
 * that time, because the code may be unloaded later.
 */
#pragma once

#include <stdint.h>

#include "queryprof.h"

/* The number of a site without one yet, 0: out of memory. */
uint32_t site_number(qp_span_site *site);

/* Publishes to the flusher the sites that it does not have yet, before the spans that have their numbers. */
void sites_publish(void);

/* The same, unless another thread is at it, or the calling one was when a signal interrupted it. */
void sites_try_publish(void);

/* There is a flusher that knows none: after a new start; in a forked child, which is alone. */
void sites_publish_again(void);
void sites_after_fork(void);
