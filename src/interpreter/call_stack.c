/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/call_stack.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/loader.h"
#include "base/lock.h"
#include "handler/outside.h"
#include "interpreter/interrupted.h"
#include "interpreter/language.h"

#define EAGER_LOOKS 16

static const struct language *const languages[] = { &language_python, &language_perl, &language_php,
	                                            &language_ruby, &language_node };
#define LANGUAGES (sizeof(languages) / sizeof(languages[0]))

/* The state of each language. */
static struct {
	enum { UNKNOWN, FOUND, GONE } state; /* atomic; GONE: it was unloaded, and is not searched again */
	uintptr_t code;
	bool is_seen;
} known[LANGUAGES];

static uint32_t looks;             /* atomic: calls that might have looked */
static unsigned long long unloads; /* atomic: objects that had been unloaded when was looked last */

/* The thread that searches. An abandoned search can be repeated. */
LOCK_DEFINE(lock, LOCK_INTERPRETERS, .at_fork = LOCK_BRIEFLY);

/* A query of a signal handler may have interrupted the thread that looks. */
BOUNDED_WAIT_DEFINE(for_search, "a call stack: an interpreter that another thread looks for", BOUND_MS(20),
                    "the thread that looks");

static bool is_in(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int see_object(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	*(unsigned long long *)context = info->dlpi_subs;
	for (size_t i = 0; i < LANGUAGES; i++)
		if (known[i].state == FOUND)
			known[i].is_seen |= is_in(info, known[i].code);
		else if (known[i].state == UNKNOWN && !known[i].is_seen &&
		         (known[i].code = languages[i]->find(info)))
			known[i].is_seen = true;
	return 0;
}

static void look(void)
{
	unsigned long long now = 0;

	for (size_t i = 0; i < LANGUAGES; i++)
		known[i].is_seen = false;
	loader_each(see_object, &now);
	for (size_t i = 0; i < LANGUAGES; i++)
		/* Release: a thread that reads FOUND also sees what find() has stored. */
		if (known[i].is_seen)
			__atomic_store_n(&known[i].state, FOUND, __ATOMIC_RELEASE);
		else if (known[i].state == FOUND)
			__atomic_store_n(&known[i].state, GONE, __ATOMIC_RELAXED);
	__atomic_store_n(&unloads, now, __ATOMIC_RELAXED);
}

static int count_unloads(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	*(unsigned long long *)context = info->dlpi_subs;
	return 1;
}

/* An interpreter may be loaded late, but a program without one is not searched at each call: the
 * first calls search, possibly on several threads, then the 16th, 32nd, … The functions of an
 * unloaded interpreter must not be called, so each call checks for an unloading. */
static bool is_due(bool is_any_found)
{
	unsigned long long now = 0;

	if (!is_any_found)
		return language_tries(&looks) || __atomic_load_n(&looks, __ATOMIC_RELAXED) <= EAGER_LOOKS;
	loader_each(count_unloads, &now);
	return now != __atomic_load_n(&unloads, __ATOMIC_RELAXED);
}

static bool is_found(size_t language)
{
	return __atomic_load_n(&known[language].state, __ATOMIC_ACQUIRE) == FOUND;
}

static bool is_any_found(void)
{
	for (size_t i = 0; i < LANGUAGES; i++)
		if (is_found(i))
			return true;
	return false;
}

/* Threads that wait for the one that looks need not look after it. */
static void search_once(bool was_any_found)
{
	struct bounded_wait wait = bounded_wait_begin(&for_search);

	if (!lock_acquire_within(&lock, &wait))
		return;
	if (was_any_found || !is_any_found())
		look();
	lock_release(&lock);
}

static void search_if_due(void)
{
	bool was_any_found = is_any_found();

	if (is_due(was_any_found))
		search_once(was_any_found);
}

/* --- of a call ----------------------------------------------------------------------------------- */

static void read_language(struct call_stack *stack, size_t language)
{
	uintptr_t at = languages[language]->thread(stack->memory);

	stack->reader = languages[language]->frames;
	if (at)
		stack->reader->read(stack, at);
	if (stack->size)
		interrupted_keep(stack->reader, at);
}

size_t call_stack_read(char to[CALL_STACK_BYTES])
{
	struct call_stack stack = { .bytes = to };

	search_if_due();
	for (size_t i = 0; !stack.size && i < LANGUAGES; i++)
		if (is_found(i) && (stack.memory || (stack.memory = memory_open())))
			read_language(&stack, i);
	memory_close(stack.memory);
	return stack.size;
}

void call_stack_find(void)
{
	struct memory *memory;
	uintptr_t at = 0;

	if (!__atomic_load_n(&outside_is_on, __ATOMIC_RELAXED) || !(memory = memory_open()))
		return;
	search_if_due();
	for (size_t i = 0; !at && i < LANGUAGES; i++)
		if (is_found(i) && interrupted_can_read(languages[i]->frames) &&
		    (at = languages[i]->thread(memory)))
			interrupted_keep(languages[i]->frames, at);
	memory_close(memory);
}
