/* SPDX-License-Identifier: Apache-2.0 */
#include "span/note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "span/context.h"

#define TEXT_MAX 1000

static uint32_t size_of(const char *text)
{
	return (uint32_t)text_fit(text, TEXT_MAX);
}

static void put_note(qp_span span, enum entry_kind kind, const char *key, const char *value)
{
	struct span_chunk *chunk;
	uint32_t key_size = size_of(key), value_size = size_of(value);
	uint32_t texts = (key_size + value_size + (uint32_t)sizeof(struct span_entry) - 1) /
	                 (uint32_t)sizeof(struct span_entry);
	struct span_entry *entry;
	uint64_t number;

	if (!qp_span_here || !span.id || !context_find(span.id, &chunk))
		return;
	entry = context_room(qp_span_here, 1 + texts, &number);
	if (!entry)
		return;
	*entry = (struct span_entry){
		.start_ns = span.id,
		.duration = kind == ENTRY_EVENT ? fast_clock_ns(qp_span_here->clock) : 0,
		.children = (uint64_t)key_size << 32 | value_size,
		.parent = texts,
		.site = (uint32_t)kind,
	};
	memset(entry + 1, 0, texts * sizeof(*entry));
	if (key_size)
		memcpy(entry + 1, key, key_size);
	if (value_size)
		memcpy((char *)(entry + 1) + key_size, value, value_size);
}

void qp_span_attr(qp_span span, const char *key, const char *value)
{
	put_note(span, ENTRY_ATTRIBUTE, key, value);
}

void qp_span_attr_number(qp_span span, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	put_note(span, ENTRY_NUMBER, key, text);
}

void qp_span_event(qp_span span, const char *name)
{
	put_note(span, ENTRY_EVENT, name, NULL);
}

void qp_span_set_status(qp_span span, enum qp_span_status status)
{
	struct span_chunk *chunk;
	struct span_entry *entry = qp_span_here && span.id ? context_find(span.id, &chunk) : NULL;

	if (entry && entry_is_span(entry))
		entry->duration = (entry->duration & ~SPAN_STATUS) |
		                  ((uint64_t)status << SPAN_STATUS_SHIFT & SPAN_STATUS);
}
