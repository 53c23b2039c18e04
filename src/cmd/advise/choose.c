/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greedy: each candidate is built on the second copy and measured against the first. The best one is then
 * built on both, and the others are measured again, until none of them is worth it. At the end the whole set
 * is measured against no index.
 */
#include "cmd/advise/choose.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/ui/progress.h"

#define WORTH 0.01   /* a part of the recorded time: an index that saves less is not proposed */
#define SIMILAR 0.05 /* a part of the best saving: the same index with fewer columns is as good */
#define ROUNDS 5
#define MS INT64_C(1000000)

struct chooser {
	const struct workload *workload;
	struct connection *connections; /* before, after */
	int64_t end_ns, run_ns;
	double *references; /* the time of a run of each statement before, as first measured */
};

static int64_t left(const struct chooser *chooser)
{
	const int64_t left = chooser->end_ns - connection_clock_ns();

	return left > 0 ? left : 0;
}

/* --- measuring ------------------------------------------------------------------------------------- */

static sqlite3_stmt *prepare(const struct side *side, int variant)
{
	return workload_statement(side->what, side->connection, variant);
}

static bool measure(const struct chooser *chooser, const struct recorded *one, int64_t ns,
                    struct turns *turns)
{
	const struct side sides[2] = { { &chooser->connections[0], prepare, one },
		                       { &chooser->connections[1], prepare, one } };
	const struct turns_limit limit = { ns, chooser->run_ns, 6, 0.01 };

	return turns_take(turns, sides, one->variants, &limit);
}

/* Whether SQLite runs the statement in another way, now that the second copy has another index. */
static bool has_other_plan(const struct chooser *chooser, const struct recorded *one)
{
	char *plans[2];
	bool is_other;

	for (int i = 0; i < 2; i++)
		plans[i] = connection_plan(&chooser->connections[i], one->texts[0]);
	is_other = plans[0] && plans[1] ? strcmp(plans[0], plans[1]) != 0 : plans[0] || plans[1];
	sqlite3_free(plans[0]);
	sqlite3_free(plans[1]);
	return is_other;
}

/* A statement that changes rows maintains the index, and may search in it for a trigger or a foreign key,
 * which is not in its plan. */
static bool is_affected(const struct chooser *chooser, const struct recorded *one,
                        const struct candidate *candidate)
{
	if (!one->variants)
		return false;
	if (one->is_write &&
	    (workload_touches(one, candidate->table) || workload_touches(one, candidate->parent)))
		return true;
	return workload_touches(one, candidate->table) && has_other_plan(chooser, one);
}

/* The time that all runs of the statement saved. The machine may have been faster during earlier
 * measurements, so both sides are scaled until the time before is the same in all of them. */
static void add_saved(const struct recorded *one, const struct turns *turns, double *reference, double *saved,
                      double *variance)
{
	const double before = turns->before.mean;
	double scale;

	if (reference && !(*reference > 0))
		*reference = before;
	scale = workload_scale(one, reference ? *reference : before);
	if (reference && before > 0)
		scale *= *reference / before;
	*saved += scale * turns->saved.mean;
	*variance += scale * sums_error(&turns->saved) * scale * sums_error(&turns->saved);
}

static bool is_worth(const struct workload *workload, double saved, double variance)
{
	return saved > WORTH * workload->ns && saved > 2.5 * sqrt(variance);
}

bool choice_is_worth(const struct choice *choice, const struct workload *workload)
{
	return choice->chosen.count && is_worth(workload, choice->saved, choice->variance);
}

static int64_t used_bytes(struct connection *connection)
{
	return connection_number(connection,
	                         "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
	                         "pragma_freelist_count, pragma_page_size",
	                         0);
}

static int build(const struct chooser *chooser, int copy, const char *sql)
{
	struct connection *connection = &chooser->connections[copy];
	int code;

	connection->end_ns = connection_clock_ns() + left(chooser) / 2 + 1;
	code = connection_run(connection, sql);
	connection->end_ns = 0;
	return code;
}

/* Measures the difference between the two copies; the second one has the candidate. is_base: the first
 * copy is unchanged. */
static void measure_all(const struct chooser *chooser, struct candidate *candidate, int64_t ns, bool is_base)
{
	const struct workload *workload = chooser->workload;
	int affected = 0;

	candidate->saved = candidate->variance = 0;
	for (size_t i = 0; i < workload->statements.count; i++)
		affected += is_affected(chooser, &workload->statements.items[i], candidate);
	for (size_t i = 0; i < workload->statements.count; i++) {
		const struct recorded *one = &workload->statements.items[i];
		struct turns turns;

		if (!is_affected(chooser, one, candidate))
			continue;
		if (!measure(chooser, one, ns / affected, &turns)) {
			candidate->is_out = true; /* a UNIQUE of an expression, or a function that fails */
			return;
		}
		add_saved(one, &turns, is_base ? &chooser->references[i] : NULL, &candidate->saved,
		          &candidate->variance);
	}
}

static void evaluate(const struct chooser *chooser, struct candidate *candidate, int64_t ns, bool is_first)
{
	const int64_t bytes = used_bytes(&chooser->connections[1]);

	if (build(chooser, 1, candidate->create) != SQLITE_OK) {
		candidate->is_out = true;
		return;
	}
	candidate->bytes = used_bytes(&chooser->connections[1]) - bytes;
	measure_all(chooser, candidate, ns, is_first);
	candidate->is_out |= !is_worth(chooser->workload, candidate->saved, candidate->variance);
	connection_run(&chooser->connections[1], candidate->drop);
}

/* --- choosing ---------------------------------------------------------------------------------------- */

/* Whether the index is much smaller, because it has only a part of the rows. */
static bool is_part(const struct candidate *one, const struct candidate *other)
{
	return one->condition && !other->condition && 2 * one->bytes < other->bytes;
}

/* Whether the columns of `one` are the first columns of the other index. */
static bool is_beginning(const struct candidate *one, const struct candidate *other)
{
	const size_t size = strlen(one->list);
	const char *conditions[] = { one->condition ? one->condition : "",
		                     other->condition ? other->condition : "" };

	return !strcmp(conditions[0], conditions[1]) && !sqlite3_stricmp(one->table, other->table) &&
	       !strncmp(one->list, other->list, size) && other->list[size] == ',';
}

/* The candidate that saves the most; or its beginning, or a partial index, if that saves nearly as much. */
static struct candidate *best_of(candidates *all)
{
	struct candidate *best = NULL, *narrow;

	for (size_t i = 0; i < all->count; i++)
		if (!all->items[i].is_out && (!best || all->items[i].saved > best->saved))
			best = &all->items[i];
	narrow = best;
	for (size_t i = 0; i < all->count; i++)
		if (!all->items[i].is_out &&
		    (is_beginning(&all->items[i], narrow) || is_part(&all->items[i], narrow)) &&
		    all->items[i].saved > best->saved - SIMILAR * best->saved - sqrt(best->variance))
			narrow = &all->items[i];
	return narrow;
}

static bool is_chosen(const struct choice *choice, const struct candidate *one)
{
	for (size_t i = 0; i < choice->chosen.count; i++)
		if (!strcmp(choice->chosen.items[i].name, one->name))
			return true;
	return false;
}

/* One round with the remaining candidates. False: none of them is worth it. */
static bool choose_one(struct choice *choice, const struct chooser *chooser, candidates *all, int64_t reserve,
                       bool is_first)
{
	struct candidate *best;
	int count = 0, done = 0;

	for (size_t i = 0; i < all->count; i++)
		count += !all->items[i].is_out;
	for (size_t i = 0; i < all->count; i++) {
		struct candidate *one = &all->items[i];
		const int64_t rest = left(chooser) - reserve;

		if (one->is_out)
			continue;
		if (rest <= 0) {
			one->is_out = true;
			choice->untried += is_first;
			continue;
		}
		progress_count(++done, "indexes measured");
		evaluate(chooser, one, rest / (count - done + 2) + MS, is_first);
		choice->tried += is_first;
	}
	best = best_of(all);
	if (!best || build(chooser, 0, best->create) != SQLITE_OK ||
	    build(chooser, 1, best->create) != SQLITE_OK)
		return false;
	best->is_out = true;
	return vector_push(&choice->chosen, *best) != 0;
}

static int64_t written_by(const struct chooser *chooser, int side, const struct recorded *one)
{
	struct connection *connection = &chooser->connections[side];
	sqlite3_stmt *statement = workload_statement(one, connection, 0);
	int64_t bytes = -1;
	double ns;

	if (statement)
		connection_time(connection, statement, chooser->run_ns, &ns, &bytes);
	sqlite3_finalize(statement);
	return bytes;
}

/* Zero also if it is not known on one side. */
static void measure_written(struct choice *choice, const struct chooser *chooser, size_t i)
{
	const struct recorded *one = &chooser->workload->statements.items[i];
	struct written *written = one->is_write ? vector_at(&choice->written, i) : NULL;

	if (!written)
		return;
	*written = (struct written){ written_by(chooser, 0, one), written_by(chooser, 1, one) };
	if (written->before < 0 || written->after < 0)
		*written = (struct written){ 0 };
}

/* The whole set against no index: the first copy loses the set again. */
static void measure_set(struct choice *choice, const struct chooser *chooser)
{
	const struct workload *workload = chooser->workload;
	const size_t count = workload->statements.count;

	for (size_t i = 0; i < choice->chosen.count; i++) {
		struct candidate *one = &choice->chosen.items[i];

		connection_run(&chooser->connections[0], one->drop);
		if (!candidates_is_used(workload, &chooser->connections[1], one->name,
		                        one->parent)) { /* a later index replaced it */
			connection_run(&chooser->connections[1], one->drop);
			memmove(one, one + 1, (choice->chosen.count - i - 1) * sizeof(*one));
			choice->chosen.count--;
			i--;
		}
	}
	for (size_t i = 0; i < count; i++) {
		const struct recorded *one = &workload->statements.items[i];
		struct turns *turns = vector_at(&choice->turns, i);
		bool is_any = false;

		for (size_t c = 0; c < choice->chosen.count; c++)
			is_any |= is_affected(chooser, one, &choice->chosen.items[c]);
		if (turns && is_any &&
		    measure(chooser, one, left(chooser) * 3 / 4 / (int64_t)(count - i) + 20 * MS, turns)) {
			add_saved(one, turns, NULL, &choice->saved, &choice->variance);
			measure_written(choice, chooser, i);
		}
	}
	if (choice->chosen.count == 1) { /* the newer measurement of the same */
		choice->chosen.items[0].saved = choice->saved;
		choice->chosen.items[0].variance = choice->variance;
	}
}

/* Indexes that no plan uses: how long writes take without each of them. */
static void choose_drops(struct choice *choice, const struct chooser *chooser)
{
	candidates all = { 0 };

	for (size_t i = 0; i < choice->chosen.count; i++)
		connection_run(&chooser->connections[1], choice->chosen.items[i].drop);
	candidates_find_unused(&all, chooser->workload, &chooser->connections[1]);
	for (size_t i = 0; i < all.count; i++) {
		struct candidate *one = &all.items[i];
		const int64_t bytes = used_bytes(&chooser->connections[1]);

		if (left(chooser) == 0 || build(chooser, 1, one->drop) != SQLITE_OK)
			continue;
		one->bytes = used_bytes(&chooser->connections[1]) - bytes;
		measure_all(chooser, one, left(chooser) / (int64_t)(all.count - i + 1) + MS, false);
		const bool is_worth_it =
			!one->is_out && is_worth(chooser->workload, one->saved, one->variance);

		/* Makes both copies equal again, because an index that was just built has full pages,
		 * which inserts split. */
		connection_run(&chooser->connections[0], one->drop);
		if (is_worth_it && vector_push(&choice->drops, *one))
			*one = (struct candidate){ 0 };
		else if (connection_run(&chooser->connections[0], one->create) != SQLITE_OK ||
		         connection_run(&chooser->connections[1], one->create) != SQLITE_OK)
			break;
	}
	candidates_free(&all);
}

void choice_make(struct choice *choice, const struct workload *workload, struct connection connections[2],
                 int64_t ns)
{
	const struct chooser chooser = { workload, connections, connection_clock_ns() + ns, ns / 12,
		                         calloc(workload->statements.count + 1, sizeof(double)) };
	candidates all = { 0 };

	*choice = (struct choice){ 0 };
	if (!chooser.references)
		return;
	candidates_find(&all, workload, &connections[0]);
	progress_begin("measuring indexes");
	for (int round = 0; round < ROUNDS && choose_one(choice, &chooser, &all, ns / 3, round == 0); round++)
		;
	progress_begin("measuring the choice");
	measure_set(choice, &chooser);
	progress_begin("measuring unused indexes");
	choose_drops(choice, &chooser);
	for (size_t i = 0; i < all.count; i++)
		if (is_chosen(choice, &all.items[i]))
			all.items[i] = (struct candidate){ 0 }; /* the choice owns its texts */
	candidates_free(&all);
	free(chooser.references);
}

void choice_free(struct choice *choice)
{
	candidates_free(&choice->chosen);
	candidates_free(&choice->drops);
	vector_free(&choice->turns);
	vector_free(&choice->written);
}
