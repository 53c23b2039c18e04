/* SPDX-License-Identifier: Apache-2.0 */
#include "span/site.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/text.h"
#include "base/vector.h"
#include "collect/state.h"
#include "handler/ring.h"
#include "span/chunk_pool.h"
#include "wire/record.h"
#include "wire/span_record.h"

#define TEXT_MAX 255 /* of each */

/* The number is the place in the list, from 1. */
static VECTOR(struct span_site_record *) sites;
LOCK_DEFINE(lock, LOCK_SPAN_SITES);

static uint32_t published, known; /* atomic; how many of them */

static uint32_t text_size(const char *text)
{
	return (uint32_t)text_fit(text, TEXT_MAX);
}

static size_t record_bytes(const struct span_site_record *record)
{
	return sizeof(*record) + record->name_size + record->file_size + record->function_size;
}

static struct span_site_record *copy_site(const qp_span_site *site)
{
	const struct span_site_record head = {
		.line = site->line,
		.name_size = text_size(site->name),
		.file_size = text_size(site->file),
		.function_size = text_size(site->function),
	};
	struct span_site_record *copy = malloc(record_bytes(&head));
	char *at;

	if (!copy)
		return NULL;
	*copy = head;
	at = copy->text;
	if (head.name_size)
		memcpy(at, site->name, head.name_size);
	if (head.file_size)
		memcpy(at += head.name_size, site->file, head.file_size);
	if (head.function_size)
		memcpy(copy->text + head.name_size + head.file_size, site->function, head.function_size);
	return copy;
}

/* Under the lock. */
static uint32_t add_site(const qp_span_site *site)
{
	struct span_site_record *copy = copy_site(site);

	if (!copy || !vector_push(&sites, copy)) {
		free(copy);
		return 0;
	}
	copy->number = (uint32_t)sites.count;
	/* Relaxed: a thread that publishes takes the lock. */
	__atomic_store_n(&known, copy->number, __ATOMIC_RELAXED);
	return copy->number;
}

/* False: the ring is full, the next hand-over tries again. */
static bool publish(struct ring *ring, const struct span_site_record *site)
{
	void *record = ring_reserve(ring, record_bytes(site));

	if (!record)
		return false;
	memcpy(record, site, record_bytes(site));
	ring_commit(ring, record, RECORD_SPAN_SITE);
	return true;
}

/* With the lock held. */
static void publish_all(void)
{
	struct ring *ring = sampler_ring();

	for (size_t i = published; i < sites.count; i++) /* whether the ring has room or not */
		chunk_pool_add_site(sites.items[i], record_bytes(sites.items[i]));
	while (ring && published < sites.count && publish(ring, sites.items[published]))
		__atomic_store_n(&published, published + 1, __ATOMIC_RELEASE);
}

uint32_t site_number(qp_span_site *site)
{
	uint32_t number;

	lock_acquire(&lock);
	/* Another thread may have been first. */
	number = __atomic_load_n(&site->number, __ATOMIC_RELAXED);
	if (!number)
		number = add_site(site);
	/* Before another thread can use the number, so that the name exists whatever happens to
	 * the process. */
	publish_all();
	__atomic_store_n(&site->number, number, __ATOMIC_RELAXED);
	lock_release(&lock);
	return number;
}

static bool all_are_published(void)
{
	return !sampler_ring() ||
	       __atomic_load_n(&published, __ATOMIC_ACQUIRE) == __atomic_load_n(&known, __ATOMIC_RELAXED);
}

void sites_publish(void)
{
	if (all_are_published())
		return;
	lock_acquire(&lock);
	publish_all();
	lock_release(&lock);
}

void sites_try_publish(void)
{
	if (all_are_published() || !lock_try(&lock))
		return;
	publish_all();
	lock_release(&lock);
}

void sites_after_fork(void)
{
	__atomic_store_n(&published, 0, __ATOMIC_RELAXED);
}

void sites_publish_again(void)
{
	lock_acquire(&lock); /* a thread may be telling */
	sites_after_fork();
	lock_release(&lock);
}
