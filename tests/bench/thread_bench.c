/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time that recording adds to a thread that lives for one query. Runs with and without `record`
 * alternate. `thread_bench --once` is the measured program.
 */
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define THREADS 3000
#define ROUNDS 12

static sqlite3 *db;

static void *query(void *result)
{
	sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL);
	return result;
}

static void *nothing(void *result)
{
	return result;
}

static double cpu_us(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double cpu_of_threads(void *(*start)(void *))
{
	double from = cpu_us();

	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, start, NULL))
			exit(1);
		pthread_join(thread, NULL);
	}
	return (cpu_us() - from) / THREADS;
}

/* The main thread runs the process's first query, so no measured thread pays for it. */
static int once(void)
{
	if (sqlite3_open(":memory:", &db))
		return 1;
	query(NULL);
	printf("%.3f %.3f\n", cpu_of_threads(nothing), cpu_of_threads(query));
	sqlite3_close(db);
	return 0;
}

struct sums {
	double sum, squares;
};

static void add(struct sums *sums, double value)
{
	sums->sum += value;
	sums->squares += value * value;
}

static void print(const char *what, const struct sums *sums, const char *unit)
{
	double mean = sums->sum / ROUNDS, variance = sums->squares / ROUNDS - mean * mean;

	printf("%-40s %6.2f ± %.2f%s\n", what, mean, sqrt(variance / (ROUNDS - 1)), unit);
}

static void measure(const char *command, double *idle, double *busy)
{
	FILE *from = popen(command, "r"); // NOLINT(cert-env33-c)

	if (!from || fscanf(from, "%lf %lf", idle, busy) != 2 || pclose(from)) {
		fprintf(stderr, "%s failed\n", command);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sums ratio = { 0 }, added = { 0 };
	char trace[] = "/tmp/thread-bench-XXXXXX", recorded[9000], alone[4200];

	if (argc > 1 && strcmp(argv[1], "--once") == 0)
		return once();
	if (!mkdtemp(trace))
		return 1;
	snprintf(alone, sizeof(alone), "%s --once", argv[0]);
	snprintf(recorded, sizeof(recorded), QUERYPROF_COMMAND " record --quiet --new -o %s/trace -- %s",
	         trace, alone);
	for (int i = 0; i < ROUNDS; i++) {
		double idle[2], busy[2];

		measure(alone, &idle[0], &busy[0]);
		measure(recorded, &idle[1], &busy[1]);
		add(&ratio, busy[1] / busy[0]);
		add(&added, (busy[1] - idle[1]) - (busy[0] - idle[0]));
	}
	print("a thread for each query, ratio", &ratio, "");
	print("added to it", &added, " us of CPU time");
	snprintf(recorded, sizeof(recorded), "rm -r %s", trace);
	return system(recorded); // NOLINT(cert-env33-c)
}
