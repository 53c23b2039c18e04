/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <pthread.h>
#include <queryprof.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A span of the request's trace, if the host has begun one. */
#ifdef ENGINE_WITHOUT_SPANS /* tests/bench/span_bench.c measures the spans' cost */
#define STAGE(name)
#else
#define STAGE(name) QP_SPAN(name)
#endif

struct run {
	const char *at;
	const char *id;
	char error[64];
};

static int run_query(struct run *run, uint64_t *result);

static int fail(struct run *run, int code, const char *text)
{
	snprintf(run->error, sizeof(run->error), "%s", text);
	return code;
}

/* Profiling needs one call before and one after. A query in brackets is a query of its own, and the enclosing
 * query is its initial query. */
static int run_text(const char *text, const char *id, uint64_t *result, const char **error)
{
	static __thread struct run kept;
	struct run run = { .at = text, .id = id };
	const qp_query query = { .size = sizeof(query), .text = text, .database = "numbers", .query_id = id };
	int code;

	if (qp_query_begin(&query))
		fprintf(stderr, "%s\n", qp_error());
	code = run_query(&run, result);
	qp_query_end(code, code ? run.error : NULL);
	kept = run;
	*error = kept.error;
	return code;
}

int engine_run(const char *query, const char *id, uint64_t *result, const char **error)
{
	return run_text(query, id, result, error);
}

__attribute__((noinline)) static uint64_t engine_add(uint64_t n)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 1; i <= n; i++)
		sum += i;
	return sum;
}

/* The text between the brackets, malloc'ed. */
static char *take_brackets(struct run *run)
{
	const char *start;
	int depth = 0;
	STAGE("parse");

	run->at += strspn(run->at, " ");
	if (*run->at != '(')
		return NULL;
	start = run->at + 1;
	do {
		depth += (*run->at == '(') - (*run->at == ')');
		run->at++;
	} while (*run->at && depth);
	return depth ? NULL : strndup(start, (size_t)(run->at - 1 - start));
}

static int run_inner(struct run *run, uint64_t *result)
{
	char *text = take_brackets(run);
	const char *error;
	int code;

	if (!text)
		return fail(run, ENGINE_SYNTAX, "brackets expected");
	code = run_text(text, NULL, result, &error);
	if (code)
		fail(run, code, error);
	free(text);
	return code;
}

struct task {
	pthread_t thread;
	const char *text, *id;
	uint64_t result;
	int code;
};

/* A thread runs under the id of the query for which it works. */
static void *run_task(void *context)
{
	struct task *task = context;
	const char *error;

	task->code = run_text(task->text, task->id, &task->result, &error);
	return NULL;
}

static int run_threads(struct run *run, uint64_t *result)
{
	long count = strtol(run->at, (char **)&run->at, 10);
	char *text = take_brackets(run);
	struct task tasks[16];
	int code = ENGINE_OK;

	if (!text || count < 1 || count > 16)
		return fail(run, ENGINE_SYNTAX, "threads K (Q) expected");
	for (long i = 0; i < count; i++) {
		tasks[i] = (struct task){ .text = text, .id = run->id };
		pthread_create(&tasks[i].thread, NULL, run_task, &tasks[i]);
	}
	*result = 0;
	for (long i = 0; i < count; i++) {
		pthread_join(tasks[i].thread, NULL);
		*result += tasks[i].result;
		if (tasks[i].code)
			code = fail(run, tasks[i].code, "a thread failed");
	}
	free(text);
	return code;
}

static bool take_word(struct run *run, const char *word)
{
	size_t size = strlen(word);

	run->at += strspn(run->at, " ");
	if (strncmp(run->at, word, size))
		return false;
	run->at += size;
	return true;
}

static int run_query(struct run *run, uint64_t *result)
{
	uint64_t one, two;
	int code;

	*result = 0;
	if (take_word(run, "sum ")) {
		STAGE("sum");
		*result = engine_add(strtoull(run->at, NULL, 10));
		return ENGINE_OK;
	}
	if (take_word(run, "both ")) {
		STAGE("both");
		code = run_inner(run, &one);
		if (!code)
			code = run_inner(run, &two);
		*result = code ? 0 : one + two;
		return code;
	}
	if (take_word(run, "threads "))
		return run_threads(run, result);
	if (take_word(run, "fail "))
		return fail(run, ENGINE_FAILED, run->at);
	return fail(run, ENGINE_SYNTAX, "no such query");
}
