/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The W3C's text for a trace and a span of it: "00-TRACE-SPAN-FLAGS", in small hex digits.
 */
#pragma once

#include <stdbool.h>

#include "queryprof.h"
#include "wire/span_record.h"

/* False: it is invalid. A later version's may be longer. */
bool traceparent_parse(const char *text, struct span_link *link);

void traceparent_write(const struct span_link *link, char text[QP_TRACEPARENT_BYTES]);
