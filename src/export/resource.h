/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource in OpenTelemetry's sense: the process that produced samples and spans, described by a list of
 * attributes. They come from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in the environment of the
 * exporting command, or else from the file.
 *
 * Pyroscope has labels of series instead, and makes a series for each set of the samples' labels. So these
 * names follow Prometheus' rules, and their number is limited.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

struct resource_item {
	char *key, *text; /* text NULL: a number */
	int64_t number;
};

struct resource {
	VECTOR(struct resource_item) items; /* each key once */
};

/* `resource` is zeroed. `service` NULL: from the environment, or else `program`. False: no memory. */
bool resource_fill(struct resource *resource, const char *service, const char *program, const char *host,
                   int64_t process_id);
void resource_free(struct resource *resource);

/* The error in OTEL_RESOURCE_ATTRIBUTES, for a message; NULL: it is valid. */
const char *resource_complaint(void);

/* Labels of a series including the resource's. Pyroscope accepts 30, and adds some itself. */
#define SERIES_LABELS_MAX 22

/* The name in Prometheus' form, malloc'ed. NULL: no memory. */
char *resource_label_name(const char *key);

/* Whether one of the resource's first `count` attributes has that name as its label. */
bool resource_has_label(const struct resource *resource, size_t count, const char *name);
