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
#include "cmd/live/metrics.h"
#include "cmd/page/document.h"
#include "cmd/page/microhttpd.h"
#include "cmd/page/now.h"
#include "cmd/page/password.h"
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

/* What a child reads from the file, and who waits for it. */
struct answer {
	struct document document;
	const char *type;
	struct MHD_Response *response;           /* NULL: none yet */
	VECTOR(struct MHD_Connection *) waiting; /* suspended */
};

static struct {
	struct MHD_Daemon *daemon;
	char token[2 * TOKEN_BYTES + 1];
	char host[INET6_ADDRSTRLEN + 16]; /* of the printed address */
	char name[HOST_NAME_MAX + 1];     /* the machine's; "": it is not accepted as a host */
	bool is_loopback, is_any;         /* the addresses that it listens on */
	int port;
	char *policy, *password; /* password: the header that has it; NULL: none */
	struct MHD_Response *page;
	struct answer data, metrics;
	struct document now_document;
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
		if (status == MHD_HTTP_UNAUTHORIZED)
			microhttpd.MHD_add_response_header(response, "WWW-Authenticate",
			                                   "Basic realm=\"queryprof\", charset=\"UTF-8\"");
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

/* --- answers ----------------------------------------------------------------------------------------- */

static enum MHD_Result give(struct MHD_Connection *connection, struct answer *answer)
{
	if (document_is_fresh(&answer->document) || !document_start(&answer->document)) {
		if (answer->response)
			return microhttpd.MHD_queue_response(connection, MHD_HTTP_OK, answer->response);
		return refuse(
			connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			"The trace file cannot be read now; the terminal of queryprof live shows why.\n");
	}
	if (!vector_push(&answer->waiting, connection))
		return MHD_NO;
	microhttpd.MHD_suspend_connection(connection);
	return MHD_YES;
}

static void resume_waiting(struct answer *answer)
{
	for (size_t i = 0; i < answer->waiting.count; i++)
		microhttpd.MHD_resume_connection(answer->waiting.items[i]);
	answer->waiting.count = 0;
}

/* After its document has a new text, or has failed. */
static void finish(struct answer *answer)
{
	const struct document *document = &answer->document;

	if (answer->response)
		microhttpd.MHD_destroy_response(answer->response);
	answer->response = document->text ? make_response(document->text, document->size, answer->type,
	                                                  MHD_RESPMEM_MUST_COPY)
	                                  : NULL;
	resume_waiting(answer);
}

static void close_answer(struct answer *answer)
{
	document_close(&answer->document);
	if (answer->response)
		microhttpd.MHD_destroy_response(answer->response);
	vector_free(&answer->waiting);
}

/* --- requests ---------------------------------------------------------------------------------------- */

/* Whether the machine is meant by `host`, the request's header. If it listens on all addresses, any IP
 * address may be one of its own. A site that another name leads here sends that name, so it is refused. */
static bool is_own_host(const char *host)
{
	const char *colon = host ? strrchr(host, ':') : NULL;
	char name[HOST_NAME_MAX + 1], port[8], bare[HOST_NAME_MAX + 1];
	size_t size;

	snprintf(port, sizeof(port), "%d", server.port);
	if (!colon || strcmp(colon + 1, port) != 0 || (size_t)(colon - host) >= sizeof(name))
		return false;
	if (strcmp(host, server.host) == 0)
		return true;
	size = (size_t)(colon - host);
	memcpy(name, host, size);
	name[size] = 0;
	if (server.is_loopback || server.is_any)
		if (strcmp(name, "localhost") == 0 || strcmp(name, "127.0.0.1") == 0)
			return true;
	if (!server.is_any)
		return false;
	if (*name != '[' || name[size - 1] != ']')
		return strcmp(name, server.name) == 0 || (!strchr(name, ':') && server_is_address(name));
	memcpy(bare, name + 1, size);
	bare[size - 2] = 0;
	return server_is_address(bare);
}

static bool is_own_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";

	return !origin || (strncmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
	                   strcmp(origin + sizeof(scheme) - 1, host) == 0);
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
	if (!is_own_host(host))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "The host is not this server.\n");
	if (!is_own_origin(origin, host))
		return refuse(connection, MHD_HTTP_FORBIDDEN, "Another site may not ask this server.\n");
	if (server.password && !password_matches(server.password, header(connection, "Authorization")))
		return refuse(connection, MHD_HTTP_UNAUTHORIZED,
		              "The password is missing or wrong. The user is queryprof.\n");
	rest = after_token(path);
	if (!rest)
		return refuse(
			connection, MHD_HTTP_FORBIDDEN,
			"The token is missing or wrong; queryprof live has printed the whole address.\n");
	if (!*rest)
		return microhttpd.MHD_queue_response(connection, MHD_HTTP_OK, server.page);
	if (strcmp(rest, "data") == 0)
		return give(connection, &server.data);
	if (strcmp(rest, "metrics") == 0)
		return give(connection, &server.metrics);
	if (strcmp(rest, "events") == 0)
		return answer_events(connection);
	return refuse(connection, MHD_HTTP_NOT_FOUND, "There is no such address.\n");
}

/* --- start ------------------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* False: it is not an IP address. */
static bool read_address(const char *text, union address *address)
{
	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1)
		address->any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1)
		address->any.sa_family = AF_INET6;
	return address->any.sa_family != 0;
}

bool server_is_address(const char *text)
{
	union address address;

	return read_address(text, &address);
}

bool server_is_loopback(const char *text)
{
	union address address;

	return read_address(text, &address) &&
	       (address.any.sa_family == AF_INET ? ntohl(address.v4.sin_addr.s_addr) >> 24 == 127
	                                         : IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr));
}

static bool is_any(const union address *address)
{
	return address->any.sa_family == AF_INET ? address->v4.sin_addr.s_addr == htonl(INADDR_ANY)
	                                         : IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}

/* A listening socket; -1 after a complaint. Sets the server's host and port. */
static int open_socket(const char *text, int port)
{
	union address address;
	socklen_t size = sizeof(address);
	int listening;

	read_address(text, &address);
	/* The port is in the same place of both. */
	address.v4.sin_port = htons((uint16_t)port);
	listening = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listening >= 0)
		setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (listening < 0 ||
	    bind(listening, &address.any,
	         address.any.sa_family == AF_INET ? sizeof(address.v4) : sizeof(address.v6)) != 0 ||
	    listen(listening, 64) != 0 || getsockname(listening, &address.any, &size) != 0) {
		complain("live: port %d of %s: %s; without --port a free one is used", port, text,
		         strerror(errno));
		if (listening >= 0)
			close(listening);
		return -1;
	}
	server.port = ntohs(address.v4.sin_port);
	server.is_loopback = server_is_loopback(text);
	server.is_any = is_any(&address);
	if (!server.is_any || gethostname(server.name, sizeof(server.name) - 1) != 0)
		server.name[0] = 0;
	if (*server.name)
		snprintf(server.host, sizeof(server.host), "%.50s:%d", server.name, server.port);
	else
		snprintf(server.host, sizeof(server.host),
		         address.any.sa_family == AF_INET ? "%s:%d" : "[%s]:%d", text, server.port);
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

static int metrics_make(const char *path)
{
	sqlite3 *db = trace_file_open(path);
	const int result = db ? metrics_print(db, NULL) : COMMAND_FAILED;

	if (db)
		trace_file_close(db);
	return result;
}

static int start(const char *path, const struct server_options *options, const sigset_t *ending, int *signals)
{
	int listening;

	server.password = options->password_file ? password_header(options->password_file) : NULL;
	if (options->password_file && !server.password)
		return COMMAND_FAILED;
	listening = open_socket(options->address ? options->address : "127.0.0.1", options->port);
	if (listening < 0)
		return COMMAND_FAILED;
	server.data = (struct answer){
		.document = { .make = data_print, .path = path, .least_age_ns = NS_PER_S },
		.type = "application/json",
	};
	server.metrics = (struct answer){
		.document = { .make = metrics_make, .path = path, .least_age_ns = NS_PER_S },
		.type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	};
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
	printf("http://%s/%s/\n", server.host, server.token);
	fflush(stdout);
	return COMMAND_FINE;
}

/* --- the loop ---------------------------------------------------------------------------------------- */

/* Once a second, if a page listens: sends what runs now, and if the file has changed, says so until a page
 * asks for the data. */
static void tick(void)
{
	const struct document *data = &server.data.document;

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
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), left[] = { document_left_ns(&server.data.document),
		                                                   document_left_ns(&server.metrics.document),
		                                                   document_left_ns(&server.now_document) };
	uint64_t wait = next_tick > now ? next_tick - now : 0;
	MHD_UNSIGNED_LONG_LONG ms;

	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++)
		wait = left[i] && left[i] < wait ? left[i] : wait;
	if (microhttpd.MHD_get_timeout(server.daemon, &ms) == MHD_YES && ms * 1000000 < wait)
		return (int)ms;
	return milliseconds(wait);
}

static void serve(int signals)
{
	const union MHD_DaemonInfo *info =
		microhttpd.MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct document *const now = &server.now_document, *const data = &server.data.document,
			       *const metrics = &server.metrics.document;
	uint64_t next_tick = 0;

	for (;;) {
		struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
			                { .fd = info->epoll_fd, .events = POLLIN },
			                { .fd = data->child ? data->said : -1, .events = POLLIN },
			                { .fd = now->child ? now->said : -1, .events = POLLIN },
			                { .fd = metrics->child ? metrics->said : -1, .events = POLLIN } };

		if (poll(fds, sizeof(fds) / sizeof(*fds), patience(next_tick)) < 0 && errno != EINTR)
			return;
		if (fds[0].revents)
			return;
		if (fds[2].revents && document_read(data))
			finish(&server.data);
		if (fds[3].revents && document_read(now) && now->text)
			publish("now", now->text, now->size);
		if (fds[4].revents && document_read(metrics))
			finish(&server.metrics);
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
	resume_waiting(&server.data);
	resume_waiting(&server.metrics);
	for (size_t i = 0; i < server.listeners.count; i++)
		resume(server.listeners.items[i]);
	microhttpd.MHD_stop_daemon(server.daemon);
	close_answer(&server.data);
	close_answer(&server.metrics);
	document_close(&server.now_document);
	microhttpd.MHD_destroy_response(server.page);
	release(server.newest);
	vector_free(&server.listeners);
	free(server.policy);
}

int server_run(const char *path, const struct server_options *options)
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
	result = start(path, options, &ending, &signals);
	if (!result) {
		serve(signals);
		stop();
	}
	if (signals >= 0)
		close(signals);
	free(server.password);
	return result;
}
