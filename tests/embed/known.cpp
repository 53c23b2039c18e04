/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose stacks are known by construction: a query calls the SQL function
 * spin(ms), that known::entry(), that known::outer(), into which known::middle() is
 * inlined and into that known::small(), where the time goes.
 *
 * The two instructions that do nothing mark places for tests that make their own
 * stacks; the words "line NAME" mark lines of the source.
 */
#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>

namespace known
{

#if defined(__x86_64__)
#define MARK(number) __asm__ volatile("nopl " #number "(%rax)") /* 0f 1f 80 and the number */
#else
#define MARK(number)
#endif

static volatile unsigned long work;

__attribute__((always_inline)) inline void small(int rounds)
{
	MARK(0x51505201); /* line small */
	for (int i = 0; i < rounds; i++)
		work = work + 1;
}

__attribute__((always_inline)) inline void middle(int rounds)
{
	small(rounds); /* line middle */
}

__attribute__((noinline)) int outer(int rounds)
{
	middle(rounds); /* line outer */
	return rounds;
}

static double now()
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) int entry(int ms)
{
	int rounds = 0;

	for (double end = now() + ms / 1e3; now() < end;)
		rounds += outer(100000);
	MARK(0x51505202); /* line entry */
	return rounds;
}

} // namespace known

static void spin(sqlite3_context *context, int, sqlite3_value **values)
{
	sqlite3_result_int(context, known::entry(sqlite3_value_int(values[0])));
}

int main()
{
	sqlite3 *db;

	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_create_function(db, "spin", 1, SQLITE_UTF8, NULL, spin, NULL, NULL))
		return 1;
	return sqlite3_exec(db, "SELECT spin(300)", NULL, NULL, NULL);
}
