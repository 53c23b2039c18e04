/*
 * What other rooms use of the sampler: everything that makes samples happen.
 *
 * Each thread gets a slot (handler/thread.h) at its first query, and kernel timers as the
 * queries' periods ask for them; both go with the thread.
 */
#ifndef QUERYPROF_SAMPLER_SAMPLER_H
#define QUERYPROF_SAMPLER_SAMPLER_H

#include "sampler/exec.h"
#include "sampler/fork.h"
#include "sampler/push.h"
#include "sampler/signal.h"
#include "sampler/state.h"
#include "sampler/threads.h"
#include "sampler/timers.h"

#endif
