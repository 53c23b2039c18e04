/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to a server by libcurl, which is loaded for the first one. Proxies come from the environment, as
 * in curl.
 *
 * Names and passwords come from QUERYPROF_PUSH_USER and QUERYPROF_PUSH_PASSWORD, or from a file that only its
 * owner can read. No message contains them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The options of commands that connect to a server, see struct http_settings. */
#define HTTP_CREDENTIALS_OPTION(variable)                                                                    \
	COMMAND_OPTION("credentials", "SECRETS", OPTION_FILE, (variable),                                    \
	               "a file of mode 600 with lines: user NAME, password TEXT, header NAME: VALUE")
#define HTTP_AUTHORITIES_OPTION(variable)                                                                    \
	COMMAND_OPTION("ca", "PEM", OPTION_FILE, (variable),                                                 \
	               "the certificates to check https servers with; default: the system's")

struct http_settings {
	const char *credentials; /* a file, NULL: none. Lines: user NAME, password TEXT, header NAME: VALUE */
	const char *authorities; /* path of a file of certificates, NULL: the system's */
	int64_t bytes_per_second; /* 0: unlimited */
	int64_t timeout_s;        /* of one request, besides the time that bytes_per_second makes it take */
	int64_t patience_s;       /* how long a request is repeated; INT64_MAX: until http_stop() */
	const char *gave_up;      /* the end of the message after the last error */
};

/* Refuses a URL with a name or a password, because the list of processes would show them, and certificates
 * (`authorities`, NULL: none) for http://. A command_result. */
int http_check_url(const char *command, const char *url, const char *authorities);

/* The URL with one more parameter; others can be appended. malloc'ed; NULL: no memory. */
char *http_url_with(const char *url, const char *parameter);

/* A command_result, after a complaint. */
int http_begin(const struct http_settings *settings);
void http_end(void);

/* Valid until the next request. */
struct http_response {
	long status; /* 0: no response */
	const char *text;
	size_t size;
};

enum http_result {
	HTTP_FINE,    /* 2xx */
	HTTP_REFUSED, /* repeating cannot help; after a complaint */
	HTTP_GAVE_UP, /* patience or http_stop() ended it; after a complaint */
};

/* headers: up to the first NULL; may be NULL. `is_final` decides whether repeating is useless after a
 * response other than 2xx, 401, 403 and 404; may be NULL. The pause between repetitions grows from 0.1 s to a
 * minute, and once a minute a line prints the reason. */
enum http_result http_send(const char *url, const char *const *headers, const void *body, size_t size,
                           bool (*is_final)(const struct http_response *response),
                           struct http_response *response);

/* Receives a response piece by piece. False: it does not want more, and the request fails; then `error` has
 * the reason. */
struct http_taker {
	bool (*take)(void *context, const char *data, size_t size);
	const char *(*error)(void *context);
	void *context;
};

/* The same without repetitions. taker NULL: the response is kept, as by http_send(). */
enum http_result http_fetch(const char *url, const void *body, size_t size, const struct http_taker *taker,
                            struct http_response *response);

/* Ends repeated requests soon. For signal handlers. */
void http_stop(void);
bool http_is_stopped(void);

/* Allows requests again after http_stop(), with that patience. */
void http_resume(int64_t patience_s);

/* Returns early after http_stop(). */
void http_sleep(int64_t ms);

struct http_counts {
	uint64_t requests, repeated, bytes;
};
extern struct http_counts http_counts;
