/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server of `queryprof live`: for browsers on this machine, on 127.0.0.1. One thread answers all
 * requests; children read the trace file (document.h).
 *
 * There are three addresses, all below the token: the page, `data`, and `events`, a stream of server-sent
 * events. None has parameters. A request is refused if it lacks the token, if its Host or Origin belongs to
 * another site, if it has a body, or if it is not a GET. So another site in the same browser learns nothing,
 * under any name for 127.0.0.1.
 */
#pragma once

/* Serves the trace file until a signal ends the command. port 0: any free port. Prints the address to stdout.
 * A command_result. */
int server_run(const char *path, int port);
