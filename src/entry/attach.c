/* SPDX-License-Identifier: Apache-2.0 */
#include "entry/attach.h"

#include "sql/functions.h"
#include "sql/pragma.h"
#include "sql/schema.h"
#include "sqlite/calls/hooks.h"
#include "sqlite/library/calling.h"
#include "sqlite/runs/own_statements.h"
#include "sqlite/runs/trace_callback.h"
#include "sqlite/runs/session_life.h"
#include "sqlite/session/watch_sql.h"
#include "collect/state.h"

static const struct watch_sql our_sql = {
	.rewrite = pragma_rewrite,
	.run_pragma = schema_run_pragma,
	.before_prepare = schema_expect,
	.missing_table = schema_follow,
};

static int bring_schema(struct session *session, char **error)
{
	int rc = schema_attach(session, error);

	/* queryprof will not see the statement that names the schema, so there is no later opportunity. */
	if (schema_is_locked(rc)) {
		sqlite3_free(*error);
		*error = NULL;
		rc = schema_make_eponymous(session, error);
	}
	return rc;
}

int attach_connection(sqlite3 *db, bool wants_tables, char **error)
{
	bool hooked = hooks_install(host_library()), is_new;
	struct session *session = session_bind(db, &is_new, error);
	int rc = session ? SQLITE_OK : SQLITE_ERROR;
	struct call quiet;

	watch_sql_set(&our_sql);
	if (session && is_new)
		rc = functions_register(session, error);
	if (session) {
		session->wants_tables |= wants_tables;
		session_watch(session);
	}
	/* queryprof's own statements do not count as queries of the host. */
	own_statements_begin_quiet(&quiet, __builtin_frame_address(0));
	if (!rc && is_new && wants_tables)
		functions_guard(session);
	if (!rc && !hooked)
		rc = bring_schema(session, error);
	own_statements_end_quiet(&quiet);
	if (session && is_new && !hooked)
		session_set_trace_callback(session);
	if (rc)
		counter_add(SAMPLER_SESSIONS_REFUSED, 1);
	return rc;
}
