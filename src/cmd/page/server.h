/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of `queryprof live`, for browsers on this machine, or, with a password, on others. One thread
 * answers all requests; children read the trace file (document.h).
 *
 * There are four addresses, all below the token: the page, `data`, `metrics`, and `events`, a stream of
 * server-sent events. None has parameters. A request is refused if it lacks the token or the password, if its
 * Host or Origin belongs to another site, if it has a body, or if it is not a GET. So another site in the
 * same browser learns nothing, under any name for this machine.
 */
#pragma once

#include <stdbool.h>

struct server_options {
	const char *address;       /* an IP address; NULL: 127.0.0.1 */
	const char *password_file; /* NULL: no password */
	int port;                  /* 0: any free port */
};

/* Whether the text is an IP address, and whether only this machine reaches it. */
bool server_is_address(const char *address);
bool server_is_loopback(const char *address);

/* Serves the trace file until a signal ends the command. Prints the page's address to stdout. A
 * command_result. */
int server_run(const char *path, const struct server_options *options);
