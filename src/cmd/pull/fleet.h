/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that `queryprof push` has sent to ClickHouse, read as one trace file: the requested ones
 * are fetched (sql/fleet_*.sql) into a database of a trace file's shape, and all that reads trace
 * files reads that.
 *
 * ClickHouse has no plans, inlined functions and units of labels. It has spans and waits for locks,
 * which are not read.
 */
#ifndef QUERYPROF_CMD_PULL_FLEET_H
#define QUERYPROF_CMD_PULL_FLEET_H

#include <sqlite3.h>
#include <stdbool.h>

#include "cmd/file/selection.h"
#include "cmd/line/moment.h"

struct fleet_settings {
	const char *credentials, *authorities; /* see push_http.h */
};
extern struct fleet_settings fleet_settings;

/* For the options of a command whose FILE may be a fleet. */
#define FLEET_OPTIONS                                                                                        \
	{ .name = "clickhouse",                                                                              \
	  .value = "URL",                                                                                    \
	  .kind = OPTION_SOURCE,                                                                             \
	  .help = "instead of FILE what push has sent there, of all hosts: http://…/?database=NAME" },       \
		{ .name = "credentials",                                                                     \
		  .value = "SECRETS",                                                                        \
		  .to = &fleet_settings.credentials,                                                         \
		  .kind = OPTION_FILE,                                                                       \
		  .help = "with --clickhouse: the file with name and password, as of push" },                \
	{                                                                                                    \
		.name = "ca", .value = "PEM", .to = &fleet_settings.authorities, .kind = OPTION_FILE,        \
		.help = "with --clickhouse: the certificates that https servers are checked by"              \
	}

bool fleet_is_url(const char *path);

/* COMMAND_MISUSED, after a complaint, where no argument is a fleet and an option says how to reach one. */
int fleet_check(const char *command, int argc, char **argv);

/* The fleet's runs of that host, service, statement, id and time, with what they left, in a database
 * that is gone when it is closed. *bases: when the first run of that host and service began, and the
 * last. NULL after a complaint. */
sqlite3 *fleet_open(const char *url, const struct selection *one, struct moment_bases *bases);

#endif
