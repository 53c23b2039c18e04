/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource as a message of OpenTelemetry.
 */
#pragma once

#include "export/resource.h"

#include "otlp_profiles.pb-c.h"

/* Start with a zeroed struct. The texts belong to the resource. */
struct otlp_resource {
	struct resource resource;
	Otlp__Resource message;
	Otlp__KeyValue *attributes, **pointers;
	Otlp__AnyValue *values;
};

/* Like resource_fill(). False: no memory. */
bool otlp_resource_fill(struct otlp_resource *to, const char *service, const char *program, const char *host,
                        int64_t process_id);
void otlp_resource_free(struct otlp_resource *resource);
