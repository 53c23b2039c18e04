/* SPDX-License-Identifier: Apache-2.0 */
#include "export/otlp_resource.h"

#include <stdlib.h>

bool otlp_resource_fill(struct otlp_resource *to, const char *service, const char *program, const char *host,
                        int64_t process_id)
{
	if (!resource_fill(&to->resource, service, program, host, process_id))
		return false;
	const size_t count = to->resource.items.count;
	to->attributes = calloc(count, sizeof(*to->attributes));
	to->values = calloc(count, sizeof(*to->values));
	to->pointers = calloc(count, sizeof(Otlp__KeyValue *));
	if (!to->attributes || !to->values || !to->pointers)
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct resource_item *item = &to->resource.items.items[i];

		otlp__key_value__init(&to->attributes[i]);
		otlp__any_value__init(&to->values[i]);
		to->values[i].value_case =
			item->text ? OTLP__ANY_VALUE__VALUE_STRING_VALUE : OTLP__ANY_VALUE__VALUE_INT_VALUE;
		if (item->text)
			to->values[i].string_value = item->text;
		else
			to->values[i].int_value = item->number;
		to->attributes[i].key = item->key;
		to->attributes[i].value = &to->values[i];
		to->pointers[i] = &to->attributes[i];
	}
	otlp__resource__init(&to->message);
	to->message.n_attributes = count;
	to->message.attributes = to->pointers;
	return true;
}

void otlp_resource_free(struct otlp_resource *resource)
{
	resource_free(&resource->resource);
	free(resource->attributes);
	free(resource->values);
	free(resource->pointers);
}
