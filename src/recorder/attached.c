/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way in of `queryprof attach`: the command stops a thread of the running process while that thread holds
 * no lock of the loader or of malloc(), and has it load this library and call queryprof_attached() on a
 * separate stack.
 *
 * That call uses no function of SQLite, because the thread may be inside SQLite and hold its mutexes. It only
 * writes the slots of import tables; the sampler starts with the next call of SQLite that a thread makes. The
 * libraries that the process loads later are seen by `__gmon_start__` (entry/preload.c has the reason).
 *
 * When the recording ends, the slots get their functions back, timers are deleted, and only the library's
 * memory is left. The next recording continues with this library.
 */
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "base/filters.h"
#include "handover/handover.h"
#include "recorder/record.h"
#include "queryprof.h"
#include "settings/settings.h"
#include "wire/attach_request.h"
#include "wire/version.h"

QP_API void queryprof_attached(struct attach_request *request, struct link_map *map);
QP_API extern struct attachment queryprof_attachment;
QP_API void __gmon_start__(void);

struct attachment queryprof_attachment;

/* Two, because a thread may still read the older one. */
static char environments[2][sizeof(((struct attach_request *)0)->environment)];
static unsigned newest;

/* Before a command can find the variable. */
__attribute__((constructor)) static void set_version(void)
{
	memcpy(queryprof_attachment.version, wire_version, sizeof(wire_version));
}

static enum attach_result begin(struct attach_request *request)
{
	char *environment = environments[++newest % 2];

	memcpy(environment, request->environment, sizeof(request->environment));
	environment_replace(environment);
	if (filters_are_unseen(0)) {
		snprintf(request->sentence, sizeof(request->sentence), "%s", FILTERS_UNSEEN);
		return ATTACH_REFUSED;
	}
	record_begin_again();
	handover_read_key();
	settings_read_environment();
	/* Without SQLite, each further library is checked for it. */
	qp_record();
	queryprof_attachment.is_recorded = 1;
	return ATTACH_DONE;
}

static enum attach_result end(void)
{
	if (!record_end())
		return ATTACH_BUSY;
	queryprof_attachment.is_recorded = 0;
	return ATTACH_DONE;
}

/* The loader has the name of a descriptor, which is soon another file's. */
static void take_name(struct link_map *map, const struct attach_request *request)
{
	static char path[sizeof(request->path)];

	memcpy(path, request->path, sizeof(path));
	map->l_name = path;
}

void queryprof_attached(struct attach_request *request, struct link_map *map)
{
	enum attach_result result = ATTACH_DONE;

	if (map)
		take_name(map, request);
	if (request->ended && request->ended != queryprof_attachment.command) {
		__atomic_store_n(&request->result, ATTACH_DONE, __ATOMIC_RELEASE);
		return;
	}
	if (queryprof_attachment.is_recorded)
		result = end();
	queryprof_attachment.region = request->region;
	queryprof_attachment.command = request->command;
	queryprof_attachment.command_start = request->command_start;
	if (result == ATTACH_DONE && request->begins)
		result = begin(request);
	/* Release: the sentence. */
	__atomic_store_n(&request->result, result, __ATOMIC_RELEASE);
}

/* The loader calls it for each object that it loads. */
void __gmon_start__(void)
{
	if (queryprof_attachment.is_recorded)
		qp_record();
}
