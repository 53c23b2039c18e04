/* SPDX-License-Identifier: Apache-2.0 */
#include "base/switch_flag.h"

#include <stdlib.h>

#include "base/bounded_wait.h"
#include "base/environment.h"
#include "base/newer_glibc.h"

#if defined(__has_include) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#else
/* Not known here: no flag is ever set. */
#define RSEQ_SIG 0
#endif

#define NAP_NS 100000
#define NAPS 3

BOUNDED_WAIT_DEFINE(for_switch, "the test of the switch flag: short sleeps", BOUND_MS(1000),
                    "the kernel's clock");

ptrdiff_t switch_flag_area;

/* The kernel requires the signature directly before the address at which interrupted code would
 * continue. It is permanent, because the library is never unloaded. */
const struct switch_flag_description switch_flag_description = {
	.start = (uint64_t)(uintptr_t)switch_flag_description.nowhere,
	.size = 1,
	.abort = (uint64_t)(uintptr_t)switch_flag_description.landing,
	.signature = RSEQ_SIG,
};

/* 0: there is none. */
static unsigned registered(void)
{
	return RSEQ_SIG && &__rseq_offset && &__rseq_size ? __rseq_size : 0;
}

/* The thread's area, NULL: it has none, or flags are not reliable. */
static char *area_here(void)
{
	const ptrdiff_t at = __atomic_load_n(&switch_flag_area, __ATOMIC_RELAXED);
	char *area = (char *)__builtin_thread_pointer() + at;

	/* A thread that is not registered has a number less than 0 there. */
	return at && *(const volatile int32_t *)(area + SWITCH_FLAG_PROCESSOR_AT) >= 0 ? area : NULL;
}

bool switch_flag_is_possible(void)
{
	return area_here() != NULL;
}

void switch_flag_set(void)
{
	char *area = area_here();

	if (area)
		*(volatile uint64_t *)(area + SWITCH_FLAG_POINTER_AT) =
			(uint64_t)(uintptr_t)&switch_flag_description;
}

unsigned switch_flag_test(void)
{
	struct bounded_wait wait = bounded_wait_begin(&for_switch);
	const ptrdiff_t before = __atomic_load_n(&switch_flag_area, __ATOMIC_RELAXED);
	unsigned size = registered();

	if (!size)
		return 0;
	__atomic_store_n(&switch_flag_area, __rseq_offset, __ATOMIC_RELAXED);
	for (int i = 0; i < NAPS && size; i++) {
		switch_flag_set();
		if (!bounded_wait_nap(&wait, NAP_NS) || switch_flag_is_set())
			size = 0;
	}
	__atomic_store_n(&switch_flag_area, before, __ATOMIC_RELAXED);
	return size;
}

void switch_flag_begin(void)
{
	const char *found = environment_value(SWITCH_FLAG_VARIABLE);
	unsigned size = found ? (unsigned)strtoul(found, NULL, 10) : switch_flag_test();

	/* What the command has found is true for the same registration. */
	if (size && size == registered())
		__atomic_store_n(&switch_flag_area, __rseq_offset, __ATOMIC_RELAXED);
}
