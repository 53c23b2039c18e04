/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/context.h"

#include "handler/unwind/stack_copy.h"

/* Packed, in the order of the specification; attributes follow. */
struct published {
	unsigned char trace_id[16], span_id[8];
	uint8_t valid, trace_flags;
	uint16_t attributes_size;
};
_Static_assert(sizeof(struct published) == 28, "the head of the record");

#define RECORD_MAX 640u

void context_read(const struct thread *thread, struct trace_context *context)
{
	uintptr_t record;
	struct published head;

	memset(context, 0, sizeof(*context));
	if (__builtin_expect(thread->context_at == 0, 1) ||
	    !stack_copy_part(thread->context_at, &record, sizeof(record)) || record == 0 ||
	    !stack_copy_part(record, &head, sizeof(head)) || head.valid != 1 ||
	    head.attributes_size > RECORD_MAX - sizeof(head))
		return;
	memcpy(context->trace_id, head.trace_id, sizeof(head.trace_id));
	memcpy(context->span_id, head.span_id, sizeof(head.span_id));
}
