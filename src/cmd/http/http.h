/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a server, over libcurl, which is loaded when the first one is made. Proxies come from
 * the environment, as curl has them.
 *
 * Names and passwords come from QUERYPROF_PUSH_USER and QUERYPROF_PUSH_PASSWORD, or from a file that
 * only its owner can read; they are in no message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The options of commands that speak to a server, see struct http_settings. */
#define HTTP_CREDENTIALS_OPTION(variable)                                                                    \
	COMMAND_OPTION("credentials", "SECRETS", OPTION_FILE, (variable),                                    \
	               "a file of mode 600 with lines: user NAME, password TEXT, header NAME: VALUE")
#define HTTP_AUTHORITIES_OPTION(variable)                                                                    \
	COMMAND_OPTION("ca", "PEM", OPTION_FILE, (variable),                                                 \
	               "the certificates to check https servers with; default: the system's")

struct http_settings {
	const char *credentials; /* a file, NULL: none. Lines: user NAME, password TEXT, header NAME: VALUE */
	const char *authorities; /* a file of certificates, NULL: the system's */
	int64_t bytes_per_second; /* 0: no bound */
	int64_t timeout_s;        /* of one request */
	int64_t patience_s;       /* how long a request is repeated; INT64_MAX: until push is to stop */
	const char *gave_up;      /* what is said behind the last error then */
};

/* A name or a password in a URL would stand in the list of processes; certificates (`authorities`, NULL:
 * none) mean nothing to http://. A command_result. */
int http_check_url(const char *command, const char *url, const char *authorities);

/* The URL with one more parameter, and ending so that others can follow. malloc'ed; NULL: no memory. */
char *http_url_with(const char *url, const char *parameter);

/* A command_result, after a complaint. */
int http_begin(const struct http_settings *settings);
void http_end(void);

/* The response stays valid until the next request. */
struct http_response {
	long status; /* 0: there was none */
	const char *text;
	size_t size;
};

enum http_result {
	HTTP_FINE,    /* 2xx */
	HTTP_REFUSED, /* no repetition can help; after a complaint */
	HTTP_GAVE_UP, /* patience has ended, or push is to stop; after a complaint */
};

/* headers: up to the first NULL, may be NULL. `is_final` says of a response that is neither
 * 2xx nor 401, 403, 404 whether repeating is in vain, and may be NULL. Between repetitions are 0.1 s, and
 * up to a minute; a line a minute says why. */
enum http_result http_send(const char *url, const char *const *headers, const void *body, size_t size,
                           bool (*is_final)(const struct http_response *response),
                           struct http_response *response);

/* Takes what a server says as it comes. False: no more of it, and the request fails; then `error` says why.
 */
struct http_taker {
	bool (*take)(void *context, const char *data, size_t size);
	const char *(*error)(void *context);
	void *context;
};

/* The same without repetitions. taker NULL: the response is kept, as for http_send(). */
enum http_result http_fetch(const char *url, const void *body, size_t size, const struct http_taker *taker,
                            struct http_response *response);

/* Requests that are repeated end soon; for signal handlers. */
void http_stop(void);
bool http_is_stopped(void);

/* Goes on as before http_stop(), with that patience. */
void http_resume(int64_t patience_s);

/* Waits, or until http_stop(). */
void http_sleep(int64_t ms);

struct http_counts {
	uint64_t requests, repeated, bytes;
};
extern struct http_counts http_counts;
