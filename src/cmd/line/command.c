/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/line/command.h"

#include <string.h>

static const struct command *const commands[] = {
	&command_record, &command_attach, &command_findings, &command_queries, &command_report,
	&command_plan,   &command_locks,  &command_wal,      &command_pages,   &command_traces,
	&command_trace,  &command_diff,   &command_check,    &command_advise,  &command_analyze,
	&command_top,    &command_dump,   &command_live,     &command_export,  &command_push,
	&command_pull,   &command_embed,  &command_sql,      &command_mcp,     &command_metrics,
};

const struct command *command_at(size_t index)
{
	return index < sizeof(commands) / sizeof(commands[0]) ? commands[index] : NULL;
}

const struct command *command_find(const char *name)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}
