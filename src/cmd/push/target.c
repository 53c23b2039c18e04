/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/push/target.h"

#include <string.h>

#include "base/text.h"
#include "cmd/push/profiles.h"

static const struct push_target targets[] = {
	{ "clickhouse", push_clickhouse_begin, push_clickhouse_read, push_clickhouse_send,
	  push_clickhouse_end, push_table_name },
	{ "otlp", push_otlp_begin, push_profiles_read, push_profiles_send, push_profiles_end,
	  push_profiles_name },
	{ "pyroscope", push_pyroscope_begin, push_profiles_read, push_profiles_send, push_profiles_end,
	  push_profiles_name },
};

const char *push_target_name(size_t index)
{
	return index < sizeof(targets) / sizeof(targets[0]) ? targets[index].name : NULL;
}

const struct push_target *push_target_find(const char *name)
{
	for (size_t i = 0; name && push_target_name(i); i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return name ? NULL : targets;
}

char *push_target_describe(const struct push_target *target, const char *url)
{
	return target == targets ? strdup(url) : text_format("%s %s", target->name, url);
}
