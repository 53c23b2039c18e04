/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting and stopping.
 *
 * Each thread gets a slot (handler/thread.h) at its first query, and kernel timers as the
 * queries' periods need them; both go with the thread.
 */
#pragma once

struct ring;

/* Chooses the signal, installs the handler, hooks fork. Idempotent; any thread. 0 or an errno
 * value; on error the library works without samples. The ring must exist for the life of the
 * process, because signals and ends of queries may arrive late. */
int sampler_init(struct ring *ring);

/* No more samples: pushes tag queries but arm nothing. The handler stays, as
 * signals may be on their way. sampler_init() starts again. */
void sampler_stop(void);

/* In a forked child, before it has other threads: where its ring is. */
void sampler_adopt_ring_in_child(struct ring *ring);
