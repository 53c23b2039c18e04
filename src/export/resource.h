/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource in OpenTelemetry's sense: the process that samples and spans are of, as a list of attributes.
 * It comes from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in the environment of the command that
 * exports, and from the file where those say nothing.
 *
 * Pyroscope has the same as labels of a series, and makes series of the samples' labels, too: so
 * these are names as Prometheus takes them, and not too many.
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

/* `resource` is zeroed. `service` NULL: the environment's, or `program`. False: no memory. */
bool resource_fill(struct resource *resource, const char *service, const char *program, const char *host,
                   int64_t process_id);
void resource_free(struct resource *resource);

/* The error in OTEL_RESOURCE_ATTRIBUTES, for a message; NULL: none. */
const char *resource_complaint(void);

/* A series' labels, with the resource's; Pyroscope takes 30, and adds some of its own. */
#define SERIES_LABELS_MAX 22

/* The name as Prometheus takes it, malloc'ed. NULL: no memory. */
char *resource_label_name(const char *key);

/* Whether one of the resource's first `count` attributes has that name as a label. */
bool resource_has_label(const struct resource *resource, size_t count, const char *name);
