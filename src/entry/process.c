/*
 * qp_init(), qp_shutdown(), and fork: the parts of the way of a sample are started
 * from its end backwards (whoever writes finds its reader in place) and stopped
 * from its beginning.
 */
#include "entry/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sampler/ring_reader.h"
#include "modules/modules.h"
#include "sampler/sampler.h"
#include "watch/hooks.h"
#include "sql/metrics.h"
#include "watch/runs.h"
#include "watch/session.h"
#include "settings/settings.h"
#include "store/store.h"
#include "symbol/symbol.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool running;
static struct ring *ring; /* made once: handlers may hold it for ever */

bool process_running(void)
{
	return __atomic_load_n(&running, __ATOMIC_ACQUIRE);
}

/* In the order of the way of a sample; the sampler calls them in reverse before a
 * fork, so that what stands in front is held last and released first. */
static void add_fork_hooks(void)
{
	static const struct fork_hooks hooks[] = {
		{ modules_before_fork, modules_after_fork, modules_after_fork },
		/* The flusher and readers of the store may be looking up names, and are waited for. */
		{ symbol_before_fork, symbol_after_fork_parent, symbol_after_fork_child },
		{ store_before_fork, store_after_fork_parent, store_after_fork_child },
		{ settings_before_fork, settings_after_fork, settings_after_fork },
		{ session_before_fork, session_after_fork, session_after_fork },
		{ NULL, NULL, hooks_after_fork },
	};
	static bool added;

	for (size_t i = 0; !added && i < sizeof hooks / sizeof *hooks; i++)
		sampler_add_fork_hooks(&hooks[i]);
	added = true;
}

static int apply_config(const qp_config *config)
{
	const struct {
		const char *name;
		size_t offset;
	} numbers[] = {
		{ "trace_log_max_bytes", offsetof(qp_config, trace_log_max_bytes) },
		{ "trace_log_flush_interval_ms", offsetof(qp_config, trace_log_flush_interval_ms) },
		{ "trace_log_ring_bytes", offsetof(qp_config, trace_log_ring_bytes) },
	};
	char *error = NULL;
	int code = QP_OK;

	if (config->size < offsetof(qp_config, trace_log_path) + sizeof config->trace_log_path)
		return error_set(QP_INVALID, "qp_config.size = %zu: set it to sizeof(qp_config), %zu",
		                 config->size, sizeof *config);
	if (config->trace_log_path)
		code = settings_set(NULL, "trace_log_path", config->trace_log_path, SETTING_FROM_C, &error);
	for (size_t i = 0; !code && i < sizeof numbers / sizeof *numbers; i++) {
		int64_t value;
		char text[24];

		if (config->size < numbers[i].offset + sizeof value)
			break;
		memcpy(&value, (const char *)config + numbers[i].offset, sizeof value);
		if (!value)
			continue;
		snprintf(text, sizeof text, "%lld", (long long)value);
		code = settings_set(NULL, numbers[i].name, text, SETTING_FROM_C, &error);
	}
	return code ? error_take(code, error, "the configuration was refused") : QP_OK;
}

static int start(const qp_config *config)
{
	struct store_config store;
	int code, error;

	settings_init();
	if (config && (code = apply_config(config)))
		return code;
	if (!ring && !(ring = ring_create(settings_ring_bytes())))
		return error_set(QP_NOMEM, "no memory for a ring of %zu bytes: %s", settings_ring_bytes(),
		                 strerror(errno));
	metrics_set_ring(ring);
	settings_store_config(&store);
	if ((error = modules_init()))
		return error_set(QP_SYSTEM, "the loaded modules cannot be read: %s", strerror(error));
	if ((error = store_init(ring, &store)))
		return error_set(QP_SYSTEM, "the store cannot be started: %s", strerror(error));
	if (config && config->trace_log_path) {
		char *sentence = NULL;

		code = store_open(&sentence);
		if (code) {
			store_shutdown();
			return error_take(code, sentence, "the trace file cannot be opened");
		}
	}
	add_fork_hooks();
	sampler_at_thread_end(runs_thread_ends);
	if ((error = sampler_init(ring))) {
		store_shutdown();
		return error_set(QP_SYSTEM, "sampling cannot be started: %s", strerror(error));
	}
	settings_started(true);
	return QP_OK;
}

int qp_init(const qp_config *config)
{
	int code = QP_OK;

	pthread_mutex_lock(&lock);
	if (!running) {
		code = start(config);
		__atomic_store_n(&running, code == QP_OK, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return code;
}

int qp_shutdown(void)
{
	pthread_mutex_lock(&lock);
	if (running) {
		__atomic_store_n(&running, false, __ATOMIC_RELEASE);
		settings_started(false);
		sampler_stop();
		sampler_quiesce();
		store_shutdown();
	}
	pthread_mutex_unlock(&lock);
	return QP_OK;
}

int qp_flush(int timeout_ms)
{
	char *reason;

	if (!process_running())
		return error_set(QP_NOT_RUNNING, "qp_flush: queryprof is not running, call qp_init() first");
	if (!store_drain(timeout_ms))
		return error_set(QP_STORE, "qp_flush: not all was stored within %d ms", timeout_ms);
	reason = store_error();
	return reason ? error_take(QP_STORE, reason, "") : QP_OK;
}
