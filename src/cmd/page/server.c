/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/page/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vector.h"
#include "cmd/file/selection.h"
#include "cmd/file/trace_file.h"
#include "cmd/page/document.h"
#include "cmd/page/microhttpd.h"
#include "cmd/page/now.h"
#include "cmd/read/page.h"
#include "cmd/ui/complain.h"

#define CONNECTIONS_MAX 256u
#define REQUEST_MAX ((size_t)16384) /* its line and headers */
#define IDLE_S 30u                  /* after that, an idle connection is closed */
#define TOKEN_BYTES 16

/* One event of the stream, shared by all listeners. */
struct message {
	int users;
	uint64_t number;
	size_t size;
	char text[];
};

/* A page that listens to the events. It gets the newest message, so a slow reader misses some. */
struct listener {
	struct MHD_Connection *connection;
	struct message *message; /* being sent; NULL: none */
	size_t offset;           /* in the message */
	uint64_t seen;           /* the number of the newest message that was sent */
	bool is_suspended;
};

static struct {
	struct MHD_Daemon *daemon;
	char token[2 * TOKEN_BYTES + 1];
	char hosts[2][32], origins[2][40]; /* accepted from a browser */
	char *policy;
	struct MHD_Response *page, *data; /* data: from data_document; NULL: none yet */
	struct document data_document, now_document;
	VECTOR(struct MHD_Connection *) waiting; /* suspended, for data_document */
	VECTOR(struct listener *) listeners;
	struct message *newest;
	uint64_t numbers; /* of messages so far */
} server;

/* --- responses ------------------------------------------------------------------------------------- */

/* The headers of all responses. */
static const char *const headers[][2] = {
	{ "Cache-Control", "no-store" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "X-Frame-Options", "DENY" },
};

static struct MHD_Response *with_headers(struct MHD_Response *response, const char *type)
{
	for (size_t i = 0; response && i < sizeof(headers) / sizeof(*headers); i++)
		microhttpd.MHD_add_response_header(response, headers[i][0], headers[i][1]);
	if (response) {
		microhttpd.MHD_add_response_header(response, "Content-Security-Policy", server.policy);
		microhttpd.MHD_add_response_header(response, "Content-Type", type);
	}
	return response;
}

/* The response owns `text` if it `is_owned`. NULL: no memory. */
static struct MHD_Response *make_response(const char *text, size_t size, const char *type,
                                          enum MHD_ResponseMemoryMode mode)
{
	return with_headers(microhttpd.MHD_create_response_from_buffer(size, (void *)text, mode), type);
}

/* Its text has nothing from the request and nothing about the machine. */
static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *sentence)
{
	struct MHD_Response *response = make_response(sentence, strlen(sentence), "text/plain; charset=utf-8",
	                                              MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result = MHD_NO;

	if (response) {
		if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
			microhttpd.MHD_add_response_header(response, "Allow", "GET");
		result = microhttpd.MHD_queue_response(connection, status, response);
		microhttpd.MHD_destroy_response(response);
	}
	return result;
}

/* --- events ------------------------------------------------------------------------------------------ */

static void release(struct message *message)
{
	if (message && --message->users == 0)
		free(message);
}

static void resume(struct listener *listener)
{
	if (listener->is_suspended)
		microhttpd.MHD_resume_connection(listener->connection);
	listener->is_suspended = false;
}

/* text: JSON, in which a line feed is white space. */
static void publish(const char *event, const char *text, size_t size)
{
	const size_t room = size + strlen(event) + sizeof("event: \ndata: \n\n");
	struct message *message = malloc(sizeof(*message) + room);

	if (!message)
		return;
	message->users = 1;
	message->number = ++server.numbers;
	message->size = (size_t)snprintf(message->text, room, "event: %s\ndata: ", event);
	for (size_t i = 0; i < size; i++)
		message->text[message->size++] = text[i] == '\n' ? ' ' : text[i];
	message->text[message->size++] = '\n';
	message->text[message->size++] = '\n';
	release(server.newest);
	server.newest = message;
	for (size_t i = 0; i < server.listeners.count; i++)
		resume(server.listeners.items[i]);
}

/* Copies the next bytes for a page. If there are none, suspends the connection until there are more. */
static ssize_t read_events(void *context, uint64_t position, char *buffer, size_t room)
{
	struct listener *listener = context;
	size_t size;

	(void)position;
	if (!listener->message && server.newest && server.newest->number > listener->seen) {
		listener->message = server.newest;
		listener->message->users++;
		listener->offset = 0;
	}
	if (!listener->message) {
		listener->is_suspended = true;
		microhttpd.MHD_suspend_connection(listener->connection);
		return 0;
	}
	size = listener->message->size - listener->offset;
	size = size < room ? size : room;
	memcpy(buffer, listener->message->text + listener->offset, size);
	listener->offset += size;
	if (listener->offset == listener->message->size) {
		listener->seen = listener->message->number;
		release(listener->message);
		listener->message = NULL;
	}
	return (ssize_t)size;
}

static void end_listener(void *context)
{
	struct listener *listener = context;

	for (size_t i = 0; i < server.listeners.count; i++)
		if (server.listeners.items[i] == listener) {
			server.listeners.items[i] = server.listeners.items[--server.listeners.count];
			break;
		}
	release(listener->message);
	free(listener);
}

static enum MHD_Result answer_events(struct MHD_Connection *connection)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!listener)
		return MHD_NO;
	listener->connection = connection;
	response = with_headers(microhttpd.MHD_create_response_from_callback(
					MHD_SIZE_UNKNOWN, 4096, read_events, listener, end_listener),
	                        "text/event-stream; charset=utf-8");
	if (!response || !vector_push(&server.listeners, listener)) {
		if (response)
			microhttpd.MHD_destroy_response(response); /* the listener is freed with it */
		else
			free(listener);
		return MHD_NO;
	}
	result = microhttpd.MHD_queue_response(connection, MHD_HTTP_OK, response);
	microhttpd.MHD_destroy_response(response);
	return result;
}

/* --- data -------------------------------------------------------------------------------------------- */

static enum MHD_Result answer_data(struct MHD_Connection *connection)
{
	if (document_is_fresh(&server.data_document) || !document_start(&server.data_document)) {
		if (server.data)
			return microhttpd.MHD_queue_response(connection, MHD_HTTP_OK, server.data);
		return refuse(
			connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"The trace file cannot be read now; the terminal of queryprof live shows why.\n");
	}
	if (!vector_push(&server.waiting, connection))
		return MHD_NO;
	microhttpd.MHD_suspend_connection(connection);
	return MHD_YES;
}

/* Resumes the waiting requests. */
static void finish_data(void)
{
	struct document *document = &server.data_document;

	if (server.data)
		microhttpd.MHD_destroy_response(server.data);
	server.data = document->text ? make_response(document->text, document->size, "application/json",
	                                             MHD_RESPMEM_MUST_COPY)
	                             : NULL;
	for (size_t i = 0; i < server.waiting.count; i++)
		microhttpd.MHD_resume_connection(server.waiting.items[i]);
	server.waiting.count = 0;
}

/* --- requests ---------------------------------------------------------------------------------------- */

static bool is_one_of(const char *text, const char *one, const char *other)
{
	return strcmp(text, one) == 0 || strcmp(text, other) == 0;
}

/* Takes the same time for every wrong token. NULL: it is missing, else the text after it. */
static const char *after_token(const char *path)
{
	const size_t size = sizeof(server.token) - 1;
	unsigned char differs = 0;

	if (path[0] != '/' || strnlen(path + 1, size) < size)
		return NULL;
	for (size_t i = 0; i < size; i++)
		differs |= (unsigned char)(path[1 + i] ^ server.token[i]);
	return differs || path[1 + size] != '/' ? NULL : path + 2 + size;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return microhttpd.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
	static int is_known;
	const char *host = header(connection, "Host"), *origin = header(connection, "Origin"), *rest;

	(void)context;
	(void)version;
	(void)upload;
	if (strcmp(method, "GET") != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET is allowed.\n");
	if (header(connection, "Content-Length") || header(connection, "Transfer-Encoding") || *upload_size)
		return refuse(connection, MHD_HTTP_BAD_REQUEST, "A request with a body is not allowed.\n");
	/* The first call comes before the end of the request, when an answer would close the connection. */
	if (!*state) {
		*state = &is_known;
		return MHD_YES;
	}
	if (!host || !is_one_of(host, server.hosts[0], server.hosts[1]))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "The host is not this server.\n");
	if (origin && !is_one_of(origin, server.origins[0], server.origins[1]))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "Another site may not ask this server.\n");
	rest = after_token(path);
	if (!rest)
		return refuse(
			connection, MHD_HTTP_FORBIDDEN,
			"The token is missing or wrong; queryprof live has printed the whole address.\n");
	if (!*rest)
		return microhttpd.MHD_queue_response(connection, MHD_HTTP_OK, server.page);
	if (strcmp(rest, "data") == 0)
		return answer_data(connection);
	if (strcmp(rest, "events") == 0)
		return answer_events(connection);
	return refuse(connection, MHD_HTTP_NOT_FOUND, "There is no such address.\n");
}

/* --- start ------------------------------------------------------------------------------------------- */

/* A listening socket; -1 after a complaint. Sets `port` to its port. */
static int open_socket(int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons((uint16_t)*port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (listening >= 0)
		setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listening, 64) != 0 || getsockname(listening, (struct sockaddr *)&address, &size) != 0) {
		complain("live: port %d of 127.0.0.1: %s; without --port a free one is used", *port,
		         strerror(errno));
		if (listening >= 0)
			close(listening);
		return -1;
	}
	*port = ntohs(address.sin_port);
	return listening;
}

static bool make_token(void)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(server.token + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

static void name_hosts(int port)
{
	static const char *const names[] = { "127.0.0.1", "localhost" };

	for (size_t i = 0; i < 2; i++) {
		snprintf(server.hosts[i], sizeof(server.hosts[i]), "%s:%d", names[i], port);
		snprintf(server.origins[i], sizeof(server.origins[i]), "http://%s:%d", names[i], port);
	}
}

static bool make_page(void)
{
	char *text = NULL, *policy = page_policy();
	size_t size;
	FILE *to = open_memstream(&text, &size);

	/* Only a header can do this: no site may show the page in a frame. */
	if (policy && asprintf(&server.policy, "%s; frame-ancestors 'none'", policy) < 0)
		server.policy = NULL;
	free(policy);
	if (to)
		page_write(to, NULL);
	if (!to || fclose(to) != 0 || !server.policy)
		return false;
	server.page = make_response(text, size, "text/html; charset=utf-8", MHD_RESPMEM_MUST_FREE);
	return server.page != NULL;
}

static int data_print(const char *path)
{
	/* A page gets no path of the machine. */
	const struct page_options options = { .no_paths = true };
	sqlite3 *db = selection_open(path, &(struct selection){ .query = NULL });
	char *data = db ? page_data(db, path, &options) : NULL;

	if (db)
		trace_file_close(db);
	if (data)
		fputs(data, stdout);
	free(data);
	return data ? COMMAND_FINE : COMMAND_FAILED;
}

static int start(const char *path, int port, const sigset_t *ending, int *signals)
{
	const int listening = open_socket(&port);

	if (listening < 0)
		return COMMAND_FAILED;
	name_hosts(port);
	server.data_document =
		(struct document){ .make = data_print, .path = path, .least_age_ns = NS_PER_S };
	server.now_document = (struct document){ .make = now_print, .path = path };
	sigprocmask(SIG_BLOCK, ending, NULL);
	*signals = signalfd(-1, ending, SFD_CLOEXEC);
	if (make_token() && make_page() && *signals >= 0)
		server.daemon = microhttpd.MHD_start_daemon(
			MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, NULL,
			MHD_OPTION_LISTEN_SOCKET, listening, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
			MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
			REQUEST_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!server.daemon) {
		close(listening);
		return complain("live: the server cannot start: %s", strerror(errno));
	}
	printf("http://%s/%s/\n", server.hosts[0], server.token);
	fflush(stdout);
	return COMMAND_FINE;
}

/* --- the loop ---------------------------------------------------------------------------------------- */

/* Once a second, if a page listens: sends what runs now, and if the file has changed, says so until a page
 * asks for the data. */
static void tick(void)
{
	const struct document *data = &server.data_document;

	if (!server.listeners.count)
		return;
	document_start(&server.now_document);
	if (data->number && !data->child && !document_is_fresh(data))
		publish("changed", "{}", 2);
}

static int milliseconds(uint64_t ns)
{
	return ns / 1000000 < INT_MAX ? (int)(ns / 1000000) + 1 : INT_MAX;
}

/* The time until the next event, in ms. */
static int patience(uint64_t next_tick)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), left[] = { document_left_ns(&server.data_document),
		                                                   document_left_ns(&server.now_document) };
	uint64_t wait = next_tick > now ? next_tick - now : 0;
	MHD_UNSIGNED_LONG_LONG ms;

	for (size_t i = 0; i < 2; i++)
		wait = left[i] && left[i] < wait ? left[i] : wait;
	if (microhttpd.MHD_get_timeout(server.daemon, &ms) == MHD_YES && ms * 1000000 < wait)
		return (int)ms;
	return milliseconds(wait);
}

static void serve(int signals)
{
	const union MHD_DaemonInfo *info =
		microhttpd.MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct document *const now = &server.now_document, *const data = &server.data_document;
	uint64_t next_tick = 0;

	for (;;) {
		struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
			                { .fd = info->epoll_fd, .events = POLLIN },
			                { .fd = data->child ? data->said : -1, .events = POLLIN },
			                { .fd = now->child ? now->said : -1, .events = POLLIN } };

		if (poll(fds, 4, patience(next_tick)) < 0 && errno != EINTR)
			return;
		if (fds[0].revents)
			return;
		if (fds[2].revents && document_read(data))
			finish_data();
		if (fds[3].revents && document_read(now) && now->text)
			publish("now", now->text, now->size);
		if (clock_ns(CLOCK_MONOTONIC) >= next_tick) {
			next_tick = clock_ns(CLOCK_MONOTONIC) + NS_PER_S;
			tick();
		}
		microhttpd.MHD_run(server.daemon);
	}
}

static void stop(void)
{
	/* At its end, none may be suspended. */
	for (size_t i = 0; i < server.waiting.count; i++)
		microhttpd.MHD_resume_connection(server.waiting.items[i]);
	for (size_t i = 0; i < server.listeners.count; i++)
		resume(server.listeners.items[i]);
	server.waiting.count = 0;
	microhttpd.MHD_stop_daemon(server.daemon);
	document_close(&server.data_document);
	document_close(&server.now_document);
	if (server.data)
		microhttpd.MHD_destroy_response(server.data);
	microhttpd.MHD_destroy_response(server.page);
	release(server.newest);
	vector_free(&server.waiting);
	vector_free(&server.listeners);
	free(server.policy);
}

int server_run(const char *path, int port)
{
	int signals = -1, result;
	sigset_t ending;

	if (!microhttpd_open())
		return COMMAND_FAILED;
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	result = start(path, port, &ending, &signals);
	if (!result) {
		serve(signals);
		stop();
	}
	if (signals >= 0)
		close(signals);
	return result;
}
