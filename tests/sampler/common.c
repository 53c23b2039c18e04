/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"
#include "../lib/spin.h"

#include "queryprof.h"
#include "settings/settings.h"

#include <errno.h>
#include <string.h>

static void drain_sample(const struct sample_record *sample, size_t size, struct drained *to)
{
	if (size != sizeof(*sample) + sample->depth * sizeof(uint64_t) || sample->type >= SAMPLE_TYPES ||
	    sample->weight == 0 || sample->period_ns == 0) {
		to->wrong++;
		return;
	}
	for (int i = 0; i < sample->depth; i++)
		to->wrong += sample->addresses[i] != (uint64_t)i + 1;
	to->samples[sample->type]++;
	to->weights[sample->type] += sample->weight;
	to->time_ns[sample->type] += sample->weight * sample->period_ns;
	to->newest = *sample;
}

static void drain_start(const struct start_record *start, size_t size, struct drained *to)
{
	if (size != sizeof(*start) + start->text_size || start->text_size > START_TEXT_MAX) {
		to->wrong++;
		return;
	}
	to->starts++;
	to->start.query = start->query;
	to->start.run = start->run;
	to->start.text_size = start->text_size;
	memcpy(to->text, start->text, start->text_size);
	to->text[start->text_size] = '\0';
}

void drain(struct ring *ring, struct drained *to)
{
	unsigned kind;
	size_t size;
	void *record;

	while ((record = ring_peek(ring, &kind, &size))) {
		if (kind == RECORD_SAMPLE)
			drain_sample(record, size, to);
		else if (kind == RECORD_QUERY)
			to->queries++;
		else if (kind == RECORD_THREAD)
			to->threads++;
		else if (kind == RECORD_START)
			drain_start(record, size, to);
		else
			to->wrong++;
		ring_consume(ring);
	}
}

struct query_tag tag_of(struct query_run *run, uint64_t cpu_period_ns, uint64_t real_period_ns)
{
	return (struct query_tag){
		.key = run->key,
		.period_ns = { [TIMER_CPU] = cpu_period_ns, [TIMER_REAL] = real_period_ns },
		.counts = &run->counts,
	};
}

uint64_t cpu_now(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void burn(uint64_t cpu_ns)
{
	uint64_t start = cpu_now(), used = 0;

	for (; used < cpu_ns; used = cpu_now() - start)
		spin(cpu_ns - used);
}

void pause_for(uint64_t ns)
{
	struct timespec end = timespec_of_ns(clock_ns(CLOCK_MONOTONIC) + ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

int kernel_timers(void)
{
	FILE *list = fopen("/proc/self/timers", "r");
	char line[256];
	int count = 0;

	if (list == NULL)
		return -1;
	while (fgets(line, sizeof(line), list))
		count += strncmp(line, "ID:", 3) == 0;
	fclose(list);
	return count;
}

void assert_ledger(void)
{
	static const enum ledger_counter ends[] = { LEDGER_STORED,   LEDGER_DROPPED, LEDGER_IDLE,
		                                    LEDGER_STACKS,   LEDGER_LATE,    LEDGER_FOREIGN,
		                                    LEDGER_REENTERED };
	uint64_t sum, signals;

	/* A timer of this thread may still be armed. */
	do {
		signals = ledger_read(LEDGER_SIGNALS) + ledger_read(LEDGER_TAKEN);
		sum = 0;
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
			sum += ledger_read(ends[i]);
	} while (signals != ledger_read(LEDGER_SIGNALS) + ledger_read(LEDGER_TAKEN));
	printf("signals and taken %llu = stored %llu + dropped %llu + idle %llu + stacks %llu + late %llu + "
	       "foreign %llu + reentered %llu\n",
	       (unsigned long long)signals, (unsigned long long)ledger_read(LEDGER_STORED),
	       (unsigned long long)ledger_read(LEDGER_DROPPED), (unsigned long long)ledger_read(LEDGER_IDLE),
	       (unsigned long long)ledger_read(LEDGER_STACKS), (unsigned long long)ledger_read(LEDGER_LATE),
	       (unsigned long long)ledger_read(LEDGER_FOREIGN),
	       (unsigned long long)ledger_read(LEDGER_REENTERED));
	assert_int_equal(signals, sum);
}

/* Turns off the limits on threads and overhead, so that samples come at the full rate. */
__attribute__((constructor)) static void take_all(void)
{
	char *error;

	settings_set(NULL, "query_profiler_max_threads", "0", SETTING_FROM_C, &error);
	settings_set(NULL, "query_profiler_max_overhead_percent", "0", SETTING_FROM_C, &error);
}
