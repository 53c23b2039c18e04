/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/delays.h"

#include "wire/wait.h"

static uint64_t in_run_queue(const struct query_record *query)
{
	return query->account.run_delay_ns;
}

/* The thread waited outside hooked calls, and read pages. */
static uint64_t in_page_faults(const struct query_record *query)
{
	return query->account.major_faults ? query->rest_ns : 0;
}

static const struct {
	enum wait_cause cause;
	uint64_t (*ns)(const struct query_record *query);
} kinds[DELAYS] = {
	{ WAIT_RUN_QUEUE, in_run_queue },
	{ WAIT_PAGE_FAULT, in_page_faults },
};

/* Counts periods like hooked waits (query/wait.c). The random bits of the key offset the first period. */
static uint32_t periods_in(struct delays *delays, int kind, const struct query_record *query, uint64_t ns)
{
	uint64_t period = query->off_cpu_period_ns, *due = &delays->due_ns[kind], beyond;

	if (delays->period_ns[kind] != period) {
		delays->period_ns[kind] = period;
		*due = 1 + (uint64_t)((double)(query->query.lo & 0x3fffffff) / 0x40000000 * (double)period);
	}
	if (ns < *due) {
		*due -= ns;
		return 0;
	}
	beyond = ns - *due;
	*due = period - beyond % period;
	return beyond / period < UINT32_MAX ? (uint32_t)(1 + beyond / period) : UINT32_MAX;
}

size_t delays_sample(struct delays *delays, int kind, const struct query_record *query,
                     union delay_sample *sample)
{
	const struct wait_field wait = { .ns = kinds[kind].ns(query), .cause = kinds[kind].cause };
	uint32_t periods;
	int64_t value;
	char *end;

	if (!query->off_cpu_period_ns || !wait.ns || !(periods = periods_in(delays, kind, query, wait.ns)))
		return 0;
	value = (int64_t)(periods * query->off_cpu_period_ns);
	sample->record = (struct sample_record){
		.timestamp_ns = query->start_realtime_ns + query->duration_ns,
		.period_ns = query->off_cpu_period_ns,
		.query = query->query,
		.thread_id = query->thread_id,
		.weight = periods,
		.type = SAMPLE_OFF_CPU,
	};
	end = sample_field_put(&sample->record, sample->record.addresses, FIELD_VALUE, &value, sizeof(value));
	end = sample_field_put(&sample->record, end, FIELD_WAIT, &wait, sizeof(wait));
	/* The query's own label sets, innermost first. */
	if (query->labels[0] || query->labels[1])
		end = sample_field_put(&sample->record, end, FIELD_LABELS, query->labels + !query->labels[0],
		                       sizeof(*query->labels) *
		                               (query->labels[0] && query->labels[1] ? 2 : 1));
	return (size_t)(end - (char *)sample);
}
