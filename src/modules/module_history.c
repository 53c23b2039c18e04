/* SPDX-License-Identifier: Apache-2.0 */
#include "modules/module_history.h"

const struct module *module_history_find(const struct module_history *history, uint64_t address,
                                         uint32_t generation)
{
	/* Most addresses belong to modules that are still mapped. */
	const struct module *found = module_map_find(&history->mapped, address);

	if (found && found->born > generation)
		found = NULL;
	for (size_t i = history->dead.count; !found && i-- > 0;) {
		const struct module *module = history->dead.items[i];

		if (module->born <= generation && generation < module->died && module->start <= address &&
		    address < module->end)
			found = module;
	}
	return found;
}

void module_history_free(struct module_history *history)
{
	module_map_free(&history->mapped);
	vector_free(&history->dead);
}
