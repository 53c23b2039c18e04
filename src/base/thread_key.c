/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread_key.h"

#include <stddef.h>

/* glibc's number: the values of further keys are in a block that pthread_setspecific() allocates. */
#define KEYS_IN_THREAD 32

/* How often the key is made. glibc counts in each number how often a key had it. */
#define TIMES 8

int thread_key_create(pthread_key_t *key, void (*end)(void *unused))
{
	pthread_key_t made[KEYS_IN_THREAD + 1];
	size_t count = 0, last;
	int error;

	/* A new key has the lowest free number. */
	while (count <= KEYS_IN_THREAD && !(error = pthread_key_create(&made[count], end)))
		if (made[count++] >= KEYS_IN_THREAD)
			break;
	if (!count)
		return error;
	last = count > 1 && made[count - 1] >= KEYS_IN_THREAD ? count - 2 : count - 1;
	for (int i = 1; i < TIMES; i++) {
		pthread_key_delete(made[last]);
		if ((error = pthread_key_create(&made[last], end)))
			break;
	}
	*key = made[last];
	for (size_t i = 0; i < count; i++)
		if (i != last)
			pthread_key_delete(made[i]);
	return error;
}
