/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flusher's cost of finding labels in a statement's comments, once per text. The least of many rounds.
 *
 *  tools/bench comment
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../lib/clock.h"
#include "label/comment.h"

#define ROUNDS 300
#define CALLS 1000

#define QUERY                                                                                                \
	"SELECT \"users\".* FROM \"users\" WHERE \"users\".\"account_id\" = ? ORDER BY \"users\".\"name\" "  \
	"LIMIT ?"
#define TRACE "traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'"

static void measure(const char *name, const char *sql, size_t size, int calls)
{
	double least = 1e18;
	char *labels = comment_labels(sql, size);

	for (int round = 0; round < ROUNDS; round++) {
		double start = (double)cpu_ns();
		for (int i = 0; i < calls; i++)
			free(comment_labels(sql, size));
		double took = ((double)cpu_ns() - start) / calls;
		least = took < least ? took : least;
	}
	printf("  %-44s %8zu %10.0f  %s\n", name, size, least, labels ? "labels" : "none");
	free(labels);
}

int main(void)
{
	static const struct {
		const char *name, *sql;
	} statements[] = {
		{ "no comment", QUERY },
		{ "no comment, a multiplication", QUERY " OFFSET 2 * ?" },
		{ "prose", QUERY " /* the newest users of an account */" },
		{ "sqlcommenter, route", QUERY " /*route='%2Fusers%2F%3Cid%3E'*/" },
		{ "sqlcommenter, controller, action, traceparent",
		  QUERY " /*action='show',controller='users'," TRACE "*/" },
		{ "sqlcommenter, all of Django's",
		  QUERY " /*app_name='blog',controller='users%20show',db_driver='django.db.backends.sqlite3',"
		        "framework='django%3A3.2.25',route='users/%3Cname%3E'," TRACE "*/" },
		{ "Rails' query_log_tags", QUERY " /*application:Blog,controller:users,action:show*/" },
		{ "Marginalia, before", "/*application:Blog,controller:users,action:show,line:/app/models/"
		                        "user.rb:12:in `find'*/ " QUERY },
	};
	size_t size = 1 << 20;
	char *large = malloc(size + 1);

	if (!large)
		return 1;
	printf("ns of CPU time a text, by its bytes\n");
	for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++)
		measure(statements[i].name, statements[i].sql, strlen(statements[i].sql), CALLS);
	memset(large, 'x', size);
	memcpy(large + size - 10, " /*a='b'*/", 10);
	measure("1 MB of SQL, and a label", large, size, 1);
	memset(large, '/', size);
	for (size_t i = 0; i < size; i += 2)
		large[i + 1] = '*';
	measure("1 MB of unterminated comments", large, size, 1);
	free(large);
	return 0;
}
