/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof live: a page in the browser that shows a trace file, and what the recorded programs do now.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/file/trace_file.h"
#include "cmd/line/command.h"
#include "cmd/live/processes.h"
#include "cmd/page/server.h"
#include "cmd/read/page.h"

static const char *port, *listen_address, *password_file;

static const struct command_option options[] = {
	COMMAND_OPTION("port", "N", OPTION_NUMBER, &port, "the port; a free one if not given"),
	COMMAND_OPTION("listen", "ADDRESS", OPTION_TEXT, &listen_address,
	               "the IP address to listen on (default 127.0.0.1); others than this machine's own need "
	               "--password-file"),
	COMMAND_OPTION("password-file", "FILE", OPTION_FILE, &password_file,
	               "a file with the password of the user queryprof in its first line"),
	{ 0 },
};

static bool is_process(const char *target)
{
	return *target && !target[strspn(target, "0123456789")];
}

static int check(char **argv)
{
	(void)argv;
	if (listen_address && !server_is_address(listen_address)) {
		complain(
			"live: --listen %s; expected an IP address, such as 192.0.2.7, or 0.0.0.0 for all of "
			"this machine",
			listen_address);
		return COMMAND_MISUSED;
	}
	if (listen_address && !server_is_loopback(listen_address) && !password_file) {
		complain("live: --listen %s can be reached from other machines; expected --password-file "
		         "FILE, "
		         "too",
		         listen_address);
		return COMMAND_MISUSED;
	}
	if (!port || (strlen(port) <= 5 && atoi(port) >= 1 && atoi(port) <= 65535))
		return COMMAND_FINE;
	complain("live: --port %s; expected a number from 1 to 65535", port);
	return COMMAND_MISUSED;
}

static int serve(const char *path)
{
	/* Reports a file that is not a trace file before it prints an address. */
	sqlite3 *db = trace_file_open(path);

	if (!db)
		return COMMAND_FAILED;
	trace_file_close(db);
	return server_run(path, &(struct server_options){ .address = listen_address,
	                                                  .password_file = password_file,
	                                                  .port = port ? atoi(port) : 0 });
}

static int run(int argc, char **argv)
{
	struct live live;
	int result;

	(void)argc;
	if (!page_is_there("live"))
		return COMMAND_FAILED;
	if (!is_process(argv[0]))
		return serve(argv[0]);
	result = live_open("live", argv[0], &live, NULL);
	if (!result) {
		result = serve(live.path);
		live_close(&live);
	}
	return result;
}

const struct command command_live = {
	.name = "live",
	.arguments = "[PID|FILE|-- COMMAND [ARGUMENT]...] [OPTION]...",
	.summary = "Shows a trace file in the browser, and what runs now",
	.details =
		"Prints the address of a page, and serves it on 127.0.0.1 until the command ends. Open the "
		"address in a browser on this machine. FILE is a trace file, also one that `queryprof "
		"record` "
		"is writing. PID is a recorded process, and stands for its trace file. COMMAND is run and "
		"recorded, as by `queryprof record --live`.\n\n"
		"The page shows what runs now and what it waits for, the statements with their plans, "
		"callers and slowest runs, a flame graph, a time line of the threads, waits for locks and "
		"the sizes of WALs, the findings with their cures, and what was lost. While a recording is "
		"made, the page shows open queries once a second and the rest when the file has changed. "
		"If nobody records to the file, the page says so.\n\n"
		"The address contains a token, a new one each time. Without it the server answers nothing, "
		"so "
		"other users of the machine and other sites in the browser learn nothing. Whoever has the "
		"address can read the texts of statements. The page reads the trace file and changes "
		"nothing. "
		"It has no path of the machine, and fetches nothing from the network.\n\n"
		"With --listen, browsers on other machines can open the page. They need the address, and the "
		"password, with the user queryprof. HTTP does not encrypt either: use it in a network that "
		"you "
		"trust, or forward the port with ssh. The address followed by `metrics` has what `queryprof "
		"metrics` prints, for Prometheus.\n\n"
		"It needs libmicrohttpd (Debian: libmicrohttpd12). `queryprof report --html` writes the same "
		"page to a file, and does not need it.",
	.examples = "  queryprof live app.trace\n"
		    "  queryprof live 4321 --port 8080\n"
		    "  queryprof live app.trace --listen 0.0.0.0 --password-file ~/page-password\n"
		    "  queryprof live -- ./server\n",
	.options = options,
	.reads_file = true,
	.arguments_max = 1,
	.check = check,
	.run = run,
};
