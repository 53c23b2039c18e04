/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first request loads elfutils' client library, not earlier, since that brings libcurl
 * and a TLS library along.
 */
#include "symbol/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/lock.h"

#define LIBRARY_NAME "libdebuginfod.so.1"
#define SECONDS_DEFAULT 10
#define SECONDS_MAX 86400

struct debuginfod_client;

/* Declared like in <elfutils/debuginfod.h>, which would be one more package to build with. */
static struct {
	struct debuginfod_client *(*begin)(void);
	int (*find_debuginfo)(struct debuginfod_client *, const unsigned char *build_id, int size,
	                      char **path);
	void (*set_progressfn)(struct debuginfod_client *,
	                       int (*progress)(struct debuginfod_client *, long, long));
	void (*end)(struct debuginfod_client *);
	void (*free)(void *); /* of what it gives out; the library's own is another */
} client;

/* One build id that was requested; never removed. */
struct response {
	struct response *next;
	char *path; /* NULL: no file came */
	char build_id[];
};

static struct response *responses; /* atomic */
static void give_up(void);
/* The thread that fetches holds it, and a fetch may last. */
LOCK_DEFINE(lock, LOCK_DEBUGINFOD, .at_fork = LOCK_LEFT, .lost = give_up);
static bool has_given_up; /* under the lock */
/* When the attempt under way ends at the latest, and whether that ended it; under the lock. */
static uint64_t limit_ns;
static bool was_cut;

/* --- the library ---------------------------------------------------------------- */

static bool load(void)
{
	void *library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!library)
		return false;
	const struct {
		void *from;
		const char *name;
		void *target;
	} functions[] = {
		{ RTLD_DEFAULT, "free", &client.free },
		{ library, "debuginfod_find_debuginfo", &client.find_debuginfo },
		{ library, "debuginfod_set_progressfn", &client.set_progressfn },
		{ library, "debuginfod_end", &client.end },
		{ library, "debuginfod_begin", &client.begin },
	};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(functions[i].from, functions[i].name);
		if (!function)
			return false;
		memcpy(functions[i].target, &function, sizeof(function));
	}
	return true;
}

static bool is_wanted;

static void decide_once(void)
{
	const char *urls = secure_getenv("DEBUGINFOD_URLS");
	is_wanted = urls && urls[strspn(urls, " \t\n")];
}

bool debuginfod_is_wanted(void)
{
	static struct once once;
	once_do(&once, decide_once);
	return is_wanted;
}

/* --- attempts ------------------------------------------------------------------- */

static uint64_t seconds_allowed(void)
{
	const char *text = secure_getenv("DEBUGINFOD_TIMEOUT");
	char *end;
	long seconds = text ? strtol(text, &end, 10) : 0;
	return text && end != text && seconds > 0 && seconds <= SECONDS_MAX ? (uint64_t)seconds
	                                                                    : SECONDS_DEFAULT;
}

/* The client calls it about once a second; other than 0 ends the request. */
static int has_taken_too_long(struct debuginfod_client *asking, long done, long whole)
{
	(void)asking;
	(void)done;
	(void)whole;
	was_cut = clock_ns(CLOCK_MONOTONIC) >= limit_ns;
	return was_cut;
}

static const struct response *find_response(const char *build_id)
{
	/* Acquire: pairs with the release in remember(). */
	const struct response *response = __atomic_load_n(&responses, __ATOMIC_ACQUIRE);
	while (response && strcmp(response->build_id, build_id) != 0)
		response = response->next;
	return response;
}

static void remember(const char *build_id, char *path)
{
	size_t size = strlen(build_id) + 1;
	struct response *response = malloc(sizeof(*response) + size);
	if (!response) {
		free(path);
		return;
	}
	memcpy(response->build_id, build_id, size);
	response->path = path;
	response->next = __atomic_load_n(&responses, __ATOMIC_RELAXED);
	__atomic_store_n(&responses, response, __ATOMIC_RELEASE);
}

static char *request(const char *build_id)
{
	struct debuginfod_client *asking = client.begin();
	char *path = NULL, *copy;

	if (!asking)
		return NULL;
	limit_ns = clock_ns(CLOCK_MONOTONIC) + seconds_allowed() * NS_PER_S;
	was_cut = false;
	client.set_progressfn(asking, has_taken_too_long);
	/* A size of 0: it is text. */
	int result = client.find_debuginfo(asking, (const unsigned char *)build_id, 0, &path);
	client.end(asking);
	debug_log(DEBUG_SYMBOLS, "debuginfod: build id %s: %s", build_id,
	          result >= 0 ? path
	          : was_cut   ? "took too long; queryprof sends no further requests to any server"
	                      : strerror(-result));
	if (result >= 0) {
		close(result); /* it is opened, and checked, as any other debug file */
		copy = strdup(path);
		client.free(path);
		return copy;
	}
	/* The client reports a request that this process ended as "no such file". */
	has_given_up = was_cut || result != -ENOENT;
	return NULL;
}

void debuginfod_fetch(const char *build_id)
{
	if (!debuginfod_is_wanted())
		return;
	lock_acquire(&lock);
	if (!has_given_up && !client.begin)
		has_given_up = !load();
	if (!has_given_up && !find_response(build_id))
		remember(build_id, request(build_id));
	lock_release(&lock);
}

const char *debuginfod_path(const char *build_id)
{
	const struct response *response = find_response(build_id);
	return response ? response->path : NULL;
}

/* In the child of a fork: another thread was fetching and may have held locks of the client
 * library. The child sends no requests. */
static void give_up(void)
{
	has_given_up = true;
}
