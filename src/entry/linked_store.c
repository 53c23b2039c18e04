/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store, as the recorder sees it (handover/storing.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "collect/state.h"
#include "handover/handover.h"
#include "handover/storing.h"
#include "store/settings.h"
#include "store/store.h"
#include "frames/embed.h"

static int start(struct ring *ring, bool is_elsewhere)
{
	struct store_config config;
	int error;

	store_settings(&config);
	config.is_elsewhere = is_elsewhere;
	error = config.path ? store_init(ring, &config) : ENOMEM;
	free((char *)config.path);
	return error;
}

static uint64_t bytecode_lost(void)
{
	return store_counter(STORE_PLANS_LOST) + store_counter(STORE_PLANS_REMOVED);
}

static const struct storing the_store = {
	.stores = true,
	.start = start,
	.stop = store_shutdown,
	.open = store_open,
	.open_ahead = store_open_ahead,
	.first_record = store_start,
	.drain = store_drain,
	.error = store_error,
	.confine = store_confine,
	.confine_no_more = store_confine_no_more,
	.process_ends = store_drain_for_exit,
	.first_thread_ends = store_leader_ends,
	.adopt_ring_in_child = store_adopt_ring_in_child,
	.file_epoch = control_epoch,
	.bytecode_lost = bytecode_lost,
};

/* By a name that those ask for who link the archive of all parts, as nothing calls it. */
__attribute__((constructor)) void linked_store_follow(void);

void linked_store_follow(void)
{
	store_set_chore(embed_chore);
	storing_follow(&the_store);
	if (sampler_ring()) /* the process is recorded already */
		start(sampler_ring(), handover_is_done());
}
