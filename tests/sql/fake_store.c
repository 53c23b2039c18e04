/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_store.h"

#include <stdio.h>
#include <string.h>

#include "trace/embed.h"
#include "query/statement_stats.h"
#include "store/write/labels.h"
#include "queryprof.h"
#include "timers/budget.h"
#include "span/chunk.h"
#include "span/run.h"

const char *fake_store_refusal;
int fake_store_calls;
struct store_config fake_store_config;
char fake_store_path[4096];

int store_configure(const struct store_config *config, char **error)
{
	fake_store_calls++;
	if (fake_store_refusal) {
		*error = strdup(fake_store_refusal);
		return QP_STORE;
	}
	fake_store_config = *config;
	snprintf(fake_store_path, sizeof(fake_store_path), "%s", config->path);
	return QP_OK;
}

char fake_debug_path[4096];

bool symbol_set_debug_path(const char *folders)
{
	snprintf(fake_debug_path, sizeof(fake_debug_path), "%s", folders);
	return true;
}

void budget_set_max_threads(uint32_t threads)
{
	(void)threads;
}

void budget_set_max_overhead(uint32_t percent)
{
	(void)percent;
}

void statement_stats_set_max(size_t most)
{
	(void)most;
}

bool embed_chore(sqlite3 *db, int64_t file)
{
	(void)db;
	(void)file;
	return false;
}

void labels_read_comments(bool on)
{
	(void)on;
}

void chunk_set_wait(uint64_t ns)
{
	(void)ns;
}

void span_set_statements(enum span_statements which)
{
	(void)which;
}
