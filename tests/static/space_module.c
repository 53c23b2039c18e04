/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-specific data and errno of the C library with which the module was loaded. */
#include "space_module.h"

#include <errno.h>
#include <pthread.h>

static pthread_key_t keys[SPACE_KEYS];

bool space_make_keys(void)
{
	for (int i = 0; i < SPACE_KEYS; i++)
		if (pthread_key_create(&keys[i], NULL))
			return false;
	return true;
}

void space_set(uintptr_t value)
{
	for (int i = 0; i < SPACE_KEYS; i++)
		pthread_setspecific(keys[i], (void *)(value + (uintptr_t)i));
}

int space_kept(uintptr_t value)
{
	int kept = 0;

	for (int i = 0; i < SPACE_KEYS; i++)
		kept += pthread_getspecific(keys[i]) == (void *)(value + (uintptr_t)i);
	return kept;
}

int *space_errno(void)
{
	return &errno;
}
