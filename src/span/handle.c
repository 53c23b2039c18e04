/* SPDX-License-Identifier: Apache-2.0 */
#include "span/handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "span/context.h"
#include "span/keep.h"
#include "span/site.h"
#include "timers/random.h"
#include "timers/threads.h"

static struct span_link link_of(const qp_span_handle *handle)
{
	return (struct span_link){ handle->trace_hi, handle->trace_lo, handle->span };
}

/* The running span, or the parent of the context. */
static struct span_link running(const struct qp_span_context *context)
{
	struct span_link link = context->of;

	if (span_current.id)
		link.parent = span_current.id;
	return link;
}

/* The W3C's text for a trace and a span of it: "00-TRACE-SPAN-FLAGS", in small hex digits. */
#define SIZE (QP_TRACEPARENT_BYTES - 1)

static bool parse_hex(const char *text, int digits, uint64_t *number)
{
	static const char hex[] = "0123456789abcdef";

	*number = 0;
	for (int i = 0; i < digits; i++) {
		const char *found = text[i] ? strchr(hex, text[i]) : NULL;

		if (!found)
			return false;
		*number = *number << 4 | (uint64_t)(found - hex);
	}
	return true;
}

/* False: it is invalid. A later version's may be longer. */
static bool traceparent_parse(const char *text, struct span_link *link)
{
	uint64_t version, flags;

	if (strnlen(text, SIZE) < SIZE || text[2] != '-' || text[35] != '-' || text[52] != '-')
		return false;
	if (!parse_hex(text, 2, &version) || !parse_hex(text + 3, 16, &link->trace_hi) ||
	    !parse_hex(text + 19, 16, &link->trace_lo) || !parse_hex(text + 36, 16, &link->parent) ||
	    !parse_hex(text + 53, 2, &flags))
		return false;
	if (version == 0xff || (text[SIZE] && (version == 0 || text[SIZE] != '-')))
		return false;
	return (link->trace_hi || link->trace_lo) && link->parent;
}

int handle_trace_begin(const char *traceparent)
{
	struct thread *slot = sampler_thread();
	struct span_link of = { .parent = 0 };
	uint32_t flags = BATCH_ROOT;

	if (!slot)
		return error_set(QP_NOMEM, "qp_trace_begin: no memory");
	if (traceparent) {
		if (!traceparent_parse(traceparent, &of))
			return error_set(QP_INVALID,
			                 "traceparent = %s; expected 00-32 hex digits-16 hex digits-2 hex "
			                 "digits",
			                 traceparent);
		flags |= BATCH_REMOTE;
	} else {
		/* The time first: an index of such ids grows at its end. */
		of.trace_hi = clock_ns(CLOCK_REALTIME);
		of.trace_lo = random_next(slot) | 1;
	}
	return context_begin(&of, NULL, 0, flags);
}

void qp_traceparent(char text[QP_TRACEPARENT_BYTES])
{
	struct span_link link;

	text[0] = '\0';
	if (!qp_span_here)
		return;
	link = running(qp_span_here);
	/* A span id is never zero there. */
	link.parent |= !link.parent;
	snprintf(text, QP_TRACEPARENT_BYTES, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-01",
	         link.trace_hi, link.trace_lo, link.parent);
}

qp_span_handle qp_span_fork(void)
{
	struct span_link link;

	if (!qp_span_here)
		return (qp_span_handle){ 0 };
	if (!qp_span_here->is_elsewhere)
		keep_watch(qp_span_here->of.trace_lo);
	qp_span_here->is_elsewhere = true;
	link = running(qp_span_here);
	return (qp_span_handle){ .trace_hi = link.trace_hi, .trace_lo = link.trace_lo, .span = link.parent };
}

int handle_join(qp_span_handle handle)
{
	const struct span_link of = link_of(&handle);

	return context_begin(&of, NULL, 0, 0);
}

/* Those of the handles that record: the first belongs to the batch, the others are its links. */
int handle_follow(const qp_span_handle *handles, size_t count)
{
	struct span_link *links, of;
	uint32_t used = 0;
	int code;

	if (!count || count > 1000)
		return error_set(QP_INVALID, "qp_span_follow: count = %zu; expected 1 to 1000", count);
	links = malloc(count * sizeof(*links));
	if (!links)
		return error_set(QP_NOMEM, "qp_span_follow: no memory");
	for (size_t i = 0; i < count; i++)
		if (handles[i].trace_hi || handles[i].trace_lo)
			links[used++] = link_of(&handles[i]);
	of = used ? links[0] : (struct span_link){ 0 };
	code = context_begin(&of, links + 1, used ? used - 1 : 0, 0);
	free(links);
	return code;
}

/* --- a span of two threads ---------------------------------------------------------------------- */

void qp_span_object_begin(qp_span_object *object, qp_span_site *site)
{
	struct thread *slot = sampler_thread();

	*object = (qp_span_object){ .parent = qp_span_fork() };
	if (!qp_span_here || !slot)
		return;
	object->site = site;
	object->id = span_thread_number(slot);
	object->thread_id = slot->id;
	object->start_ns = fast_clock_ns(qp_span_here->clock);
}

qp_span_handle qp_span_object_handle(const qp_span_object *object)
{
	qp_span_handle handle = object->parent;

	handle.span = object->id;
	return object->id ? handle : (qp_span_handle){ 0 };
}

void qp_span_object_end(qp_span_object *object)
{
	if (!object->id)
		return;
	uint64_t lasted = clock_ns(CLOCK_MONOTONIC) - object->start_ns;
	struct span_batch batch = {
		.of = link_of(&object->parent),
		.realtime_offset = clock_offset_ns(0),
		.thread_id = (uint32_t)object->thread_id,
	};
	struct span_entry entry = {
		.start_ns = object->start_ns,
		.duration = (int64_t)lasted > 0 ? lasted & SPAN_DURATION : 0,
	};

	entry.site = __atomic_load_n(&object->site->number, __ATOMIC_RELAXED);
	if (!entry.site)
		entry.site = site_number(object->site);
	sites_publish();
	entries_hand_over(&entry, 1, object->id, &batch, NULL);
	object->id = 0;
}
