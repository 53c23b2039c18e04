/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/http/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cmd/line/command.h"
#include "queryprof.h"

#define FIRST_DELAY_MS 100
#define LAST_DELAY_MS 60000
#define REPORTED_EVERY_MS 60000
#define CONNECT_TIMEOUT_S 10L
#define SHOWN_MAX 300 /* characters of a response in a message */
/* The longest responses that must be kept, the columns of a table and the reason of a refusal, have some
 * kilobytes. */
#define RESPONSE_MAX ((size_t)1 << 20)
#define HEADERS_MAX ((size_t)256 << 10) /* of all responses to one request */
#define CREDENTIALS_LINE_MAX 65536

/* libcurl has one of two names. Other commands do not need it. */
static const char *const libraries[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

#define CURL_FUNCTIONS(F)                                                                                    \
	F(curl_global_init)                                                                                  \
	F(curl_easy_init)                                                                                    \
	F(curl_easy_reset)                                                                                   \
	F(curl_easy_setopt)                                                                                  \
	F(curl_easy_perform)                                                                                 \
	F(curl_easy_getinfo)                                                                                 \
	F(curl_easy_cleanup)                                                                                 \
	F(curl_easy_strerror)                                                                                \
	F(curl_slist_append)                                                                                 \
	F(curl_slist_free_all)

/* The headers check types by macros of the functions' names. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#define CURL_DECLARE(name) __typeof__(name) *name;
static struct {
	CURL_FUNCTIONS(CURL_DECLARE)
} curl;

static struct {
	struct http_settings settings;
	CURL *easy;
	char *user, *password;
	VECTOR(char *) headers;
	VECTOR(char) response;
	size_t headers_size;            /* of the response */
	const struct http_taker *taker; /* NULL: responses are kept */
	bool is_taken;                  /* false: the taker has failed */
	bool is_too_long;
	char error[CURL_ERROR_SIZE];
} http;

struct http_counts http_counts;
static volatile sig_atomic_t stopped;

void http_stop(void)
{
	stopped = 1;
}

bool http_is_stopped(void)
{
	return stopped;
}

void http_resume(int64_t patience_s)
{
	stopped = 0;
	if (http.settings.patience_s > patience_s)
		http.settings.patience_s = patience_s;
}

/* Calls libc, unlike base/clock.h, so that a test can change the time (tests/push/hurried.c). */
static int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

void http_sleep(int64_t ms)
{
	/* In short pieces, because a signal may arrive just before the call. */
	for (int64_t end = clock_ms() + ms, left = ms; left > 0 && !stopped; left = end - clock_ms()) {
		int64_t piece = left < 100 ? left : 100;

		nanosleep(&(struct timespec){ .tv_nsec = piece * 1000000 }, NULL);
	}
}

/* --- settings --------------------------------------------------------------------- */

static bool load_library(void)
{
	void *handle = NULL;

	for (size_t i = 0; !handle && i < sizeof(libraries) / sizeof(libraries[0]); i++)
		handle = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
#define CURL_LOOK_UP(name)                                                                                   \
	curl.name = (__typeof__(curl.name))dlsym(handle, #name);                                             \
	if (!curl.name)                                                                                      \
		return false;
	CURL_FUNCTIONS(CURL_LOOK_UP)
	return curl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

static char *copy_environment(const char *name)
{
	const char *value = getenv(name);

	return value ? strdup(value) : NULL;
}

/* False: the line has none of the known forms. */
static bool parse_line(const char *line)
{
	if (!line[0] || line[0] == '#')
		return true;
	if (strncmp(line, "user ", 5) == 0) {
		free(http.user);
		return (http.user = strdup(line + 5)) != NULL;
	}
	if (strncmp(line, "password ", 9) == 0) {
		free(http.password);
		return (http.password = strdup(line + 9)) != NULL;
	}
	return strncmp(line, "header ", 7) == 0 && strchr(line, ':') &&
	       vector_push(&http.headers, strdup(line + 7));
}

/* A command_result. */
static int read_credentials(const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat status;
	static char line[CREDENTIALS_LINE_MAX];
	int number = 0, result = COMMAND_FINE;

	if (!file || fstat(fileno(file), &status) != 0) {
		result = complain("%s: %s", path, strerror(errno));
	} else if (status.st_mode & 077) {
		result = complain("%s: other users can read it (mode %03o); push reads a password only from "
		                  "a file with mode 600",
		                  path, status.st_mode & 0777);
	}
	while (result == COMMAND_FINE && fgets(line, sizeof(line), file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file))
			result = complain("%s: line %d: longer than %zu bytes", path, number,
			                  sizeof(line) - 2);
		line[strcspn(line, "\n")] = 0;
		if (result == COMMAND_FINE && !parse_line(line))
			result = complain(
				"%s: line %d: expected user NAME, password TEXT or header NAME: VALUE", path,
				number);
	}
	explicit_bzero(line, sizeof(line));
	if (file)
		fclose(file);
	return result;
}

int http_check_url(const char *command, const char *url, const char *authorities)
{
	const char *host = !strncmp(url, "http://", 7)    ? url + 7
	                   : !strncmp(url, "https://", 8) ? url + 8
	                                                  : NULL;

	if (!host || !*host)
		complain("%s: expected a URL that begins with http:// or https://", url);
	else if (memchr(host, '@', strcspn(host, "/?")) || strstr(host, "password="))
		complain("the URL contains a name or a password, which other users can see: use "
		         "QUERYPROF_PUSH_USER and QUERYPROF_PUSH_PASSWORD, or --credentials");
	else if (authorities && host == url + strlen("http://"))
		complain("%s: --ca %s needs an https:// URL; this one is %.*s", command, authorities,
		         (int)strcspn(url, "?"), url);
	else
		return COMMAND_FINE;
	return COMMAND_MISUSED;
}

char *http_url_with(const char *url, const char *parameter)
{
	const char *question = strchr(url, '?');

	return text_format("%s%s%s", url, !question ? "?" : question[1] ? "&" : "", parameter);
}

int http_begin(const struct http_settings *settings)
{
	http.settings = *settings;
	if (!curl.curl_global_init && !load_library())
		return complain("libcurl is missing: neither %s nor %s was found (Debian: apt-get install "
		                "libcurl4)",
		                libraries[0], libraries[1]);
	http.user = copy_environment("QUERYPROF_PUSH_USER");
	http.password = copy_environment("QUERYPROF_PUSH_PASSWORD");
	if (settings->credentials && read_credentials(settings->credentials) != COMMAND_FINE)
		return COMMAND_FAILED;
	http.easy = curl.curl_easy_init();
	return http.easy ? COMMAND_FINE : complain("out of memory");
}

void http_end(void)
{
	if (http.easy)
		curl.curl_easy_cleanup(http.easy);
	free(http.user);
	free(http.password);
	for (size_t i = 0; i < http.headers.count; i++)
		free(http.headers.items[i]);
	vector_free(&http.headers);
	vector_free(&http.response);
	memset(&http, 0, sizeof(http));
}

/* --- one request ------------------------------------------------------------------ */

/* libcurl keeps all headers. */
static size_t count_header(char *data, size_t one, size_t count, void *context)
{
	(void)data;
	(void)context;
	http.headers_size += one * count;
	http.is_too_long = http.headers_size > HEADERS_MAX;
	return http.is_too_long ? 0 : one * count;
}

static size_t keep_answer(char *data, size_t one, size_t count, void *context)
{
	size_t size = one * count;
	long status = 0;

	(void)context;
	if (http.taker)
		curl.curl_easy_getinfo(http.easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200) {
		http.is_taken = http.taker->take(http.taker->context, data, size);
		return http.is_taken ? size : 0;
	}
	http.is_too_long = size > RESPONSE_MAX - http.response.count;
	if (http.is_too_long || !vector_reserve(&http.response, http.response.count + size + 1))
		return 0;
	memcpy(http.response.items + http.response.count, data, size);
	http.response.count += size;
	return size;
}

/* How long the speed limit makes a body take at most: libcurl keeps below it. */
static int64_t slowed_s(size_t size)
{
	return http.settings.bytes_per_second ? 2 * ((int64_t)size / http.settings.bytes_per_second + 1) : 0;
}

static void set_options(const char *url, struct curl_slist *headers, const void *body, size_t size)
{
	CURL *easy = http.easy;

	/* Keeps the connection. */
	curl.curl_easy_reset(easy);
	curl.curl_easy_setopt(easy, CURLOPT_URL, url);
	curl.curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, http.error);
	curl.curl_easy_setopt(easy, CURLOPT_USERAGENT, "queryprof/" QUERYPROF_VERSION);
	curl.curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl.curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl.curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl.curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl.curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, count_header);
	curl.curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_answer);
	curl.curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
	curl.curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)(http.settings.timeout_s + slowed_s(size)));
	if (http.settings.bytes_per_second)
		curl.curl_easy_setopt(easy, CURLOPT_MAX_SEND_SPEED_LARGE,
		                      (curl_off_t)http.settings.bytes_per_second);
	if (http.settings.authorities)
		curl.curl_easy_setopt(easy, CURLOPT_CAINFO, http.settings.authorities);
	if (http.user) {
		curl.curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl.curl_easy_setopt(easy, CURLOPT_USERNAME, http.user);
		curl.curl_easy_setopt(easy, CURLOPT_PASSWORD, http.password ? http.password : "");
	}
}

static struct curl_slist *list_headers(const char *const *headers)
{
	/* Otherwise libcurl would wait for permission to send the body. */
	struct curl_slist *list = curl.curl_slist_append(NULL, "Expect:");

	for (; headers && *headers; headers++)
		list = curl.curl_slist_append(list, *headers);
	for (size_t i = 0; i < http.headers.count; i++)
		list = curl.curl_slist_append(list, http.headers.items[i]);
	return list;
}

static void try_once(const char *url, const char *const *headers, const void *body, size_t size,
                     struct http_response *response)
{
	struct curl_slist *list = list_headers(headers);
	CURLcode code;

	*response = (struct http_response){ .text = "" };
	http.response.count = 0;
	http.headers_size = 0;
	http.error[0] = 0;
	http.is_taken = true;
	http.is_too_long = false;
	set_options(url, list, body, size);
	code = curl.curl_easy_perform(http.easy);
	http_counts.requests++;
	http_counts.bytes += size;
	curl.curl_easy_getinfo(http.easy, CURLINFO_RESPONSE_CODE, &response->status);
	/* The beginning of an error's text is enough. */
	if (http.is_too_long && http.headers_size <= HEADERS_MAX && response->status / 100 != 2)
		code = CURLE_OK;
	if (code != CURLE_OK)
		response->status = 0;
	if (code == CURLE_OK)
		http.error[0] = 0;
	else if (!http.is_taken)
		snprintf(http.error, sizeof(http.error), "%s", http.taker->error(http.taker->context));
	else if (http.is_too_long)
		snprintf(http.error, sizeof(http.error), "the server's response has more than %zu bytes%s",
		         http.headers_size > HEADERS_MAX ? HEADERS_MAX : RESPONSE_MAX,
		         http.headers_size > HEADERS_MAX ? " of headers" : "");
	else if (code == CURLE_OUT_OF_MEMORY)
		snprintf(http.error, sizeof(http.error),
		         "libcurl: out of memory, or a header of the response is too long");
	else if (!http.error[0])
		snprintf(http.error, sizeof(http.error), "%s", curl.curl_easy_strerror(code));
	curl.curl_slist_free_all(list);
	if (code == CURLE_OK && http.response.items) {
		http.response.items[http.response.count] = 0; /* there is room */
		response->text = http.response.items;
		response->size = http.response.count;
	}
}

/* --- and again -------------------------------------------------------------------- */

/* Describes the failure in one line. Servers may quote the request's body, but never a header. */
static char *describe(const struct http_response *response)
{
	char *text;

	if (!response->status)
		return text_format("%s", http.error);
	text = text_format("the server responded %ld%s%.*s", response->status, response->size ? ": " : "",
	                   SHOWN_MAX, response->text);
	for (char *at = text; at && *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	return text;
}

/* Without the part from the question mark on, which may contain anything. */
static int url_size(const char *url)
{
	return (int)strcspn(url, "?");
}

static void report(const char *url, const struct http_response *response, const char *what)
{
	char *why = describe(response);

	complain("%.*s: %s%s", url_size(url), url, why ? why : "out of memory", what);
	free(why);
}

/* Half of the time and a random part of the other half, so that many pushes do not return at the same
 * moment. */
static int64_t with_jitter(int64_t ms)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint32_t)clock_ms();
	return ms / 2 + (int64_t)(random % (uint32_t)(ms / 2 + 1));
}

static bool is_refusal(const struct http_response *response,
                       bool (*is_final)(const struct http_response *response))
{
	if (response->status == 401 || response->status == 403 || response->status == 404)
		return true;
	return response->status && is_final && is_final(response);
}

enum http_result http_send(const char *url, const char *const *headers, const void *body, size_t size,
                           bool (*is_final)(const struct http_response *response),
                           struct http_response *response)
{
	int64_t begin = clock_ms(), reported = begin - REPORTED_EVERY_MS, delay = FIRST_DELAY_MS;
	int64_t patience = http.settings.patience_s;

	for (;; http_counts.repeated++) {
		try_once(url, headers, body, size, response);
		if (response->status / 100 == 2)
			return HTTP_FINE;
		if (is_refusal(response, is_final)) {
			report(url, response, "");
			return HTTP_REFUSED;
		}
		int64_t now = clock_ms();
		if (stopped || (now - begin) / 1000 >= patience) {
			report(url, response, http.settings.gave_up);
			return HTTP_GAVE_UP;
		}
		if (now - reported >= REPORTED_EVERY_MS) {
			report(url, response, " (push retries until it works)");
			reported = now;
		}
		http_sleep(with_jitter(delay));
		delay = delay * 2 < LAST_DELAY_MS ? delay * 2 : LAST_DELAY_MS;
	}
}

enum http_result http_fetch(const char *url, const void *body, size_t size, const struct http_taker *taker,
                            struct http_response *response)
{
	enum http_result result;

	http.taker = taker;
	http.settings.patience_s = 0;
	result = http_send(url, NULL, body, size, NULL, response);
	http.taker = NULL;
	return result;
}
