/* SPDX-License-Identifier: Apache-2.0 */
/* Runs each query in a new thread: `threads N`. Prints the CPU time of each thread in us. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static sqlite3 *db;

static void *query(void *result)
{
	if (sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL))
		exit(1);
	return result;
}

static double cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	double from;

	if (sqlite3_open(":memory:", &db))
		return 1;
	query(NULL);
	from = cpu_us();
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, query, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	printf("%.3f\n", (cpu_us() - from) / count);
	return sqlite3_close(db);
}
