/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record of fixed size, written by one call, so a killed push leaves the old one or the new one. After a
 * crash of the machine it may be torn; its checksum is wrong then, and it counts as missing.
 */
#include "cmd/push/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cmd/ui/complain.h"

#define RECORD_BYTES 384
#define HEAD "queryprof push 2"
#define OLD_HEAD "queryprof push 1" /* in which PUSH_STATS was a time */

/* Text that people can read, filled up with blanks. */
static void make_record(const struct push_state *state, const char *head, char record[RECORD_BYTES + 1])
{
	const struct push_position *const positions[] = { &state->sent, &state->next };
	int used = snprintf(record, RECORD_BYTES, "%s", head);

	for (int i = 0; i < 2 * PUSH_POSITIONS; i++)
		used += snprintf(record + used, (size_t)(RECORD_BYTES - used), " %" PRId64,
		                 positions[i / PUSH_POSITIONS]->at[i % PUSH_POSITIONS]);
	used += snprintf(record + used, (size_t)(RECORD_BYTES - used), " %016" PRIx64,
	                 hash_bytes(record, (size_t)used).first);
	memset(record + used, ' ', (size_t)(RECORD_BYTES - used));
	record[RECORD_BYTES - 1] = '\n';
	record[RECORD_BYTES] = 0;
}

static void parse_record(struct push_state *state, const char *record)
{
	struct push_position *const positions[] = { &state->sent, &state->next };
	bool is_old = strncmp(record, OLD_HEAD, strlen(OLD_HEAD)) == 0;
	const char *head = is_old ? OLD_HEAD : HEAD;
	char again[RECORD_BYTES + 1], *at;

	if (strncmp(record, head, strlen(head)) != 0)
		return;
	at = (char *)record + strlen(head);
	for (int i = 0; i < 2 * PUSH_POSITIONS; i++)
		positions[i / PUSH_POSITIONS]->at[i % PUSH_POSITIONS] = strtoll(at, &at, 10);
	make_record(state, head, again);
	if (strcmp(again, record) != 0)
		state->sent = state->next = (struct push_position){ { 0 } };
	if (is_old) /* all of them are sent again, in the next piece */
		state->sent.at[PUSH_STATS] = state->next.at[PUSH_STATS] = 0;
}

bool push_state_open(struct push_state *state, const char *trace_file, const char *target, const char *path)
{
	char record[RECORD_BYTES + 1] = "";

	*state = (struct push_state){ .fd = -1 };
	state->path = path ? text_format("%s", path)
	                   : text_format("%s-push-%08x", trace_file,
	                                 (unsigned)hash_bytes(target, strlen(target)).first);
	if (!state->path) {
		complain("out of memory");
		return false;
	}
	state->fd = regular_file_make(state->path, O_RDWR);
	if (state->fd < 0) {
		complain("%s: %s (--state names another file for push's position)", state->path,
		         errno == ELOOP   ? "a symbolic link"
		         : errno == EPERM ? "not a regular file of this user"
		                          : strerror(errno));
	} else if (flock(state->fd, LOCK_EX | LOCK_NB) != 0) {
		complain("%s: another push of this file to this target is running", state->path);
	} else {
		if (pread(state->fd, record, RECORD_BYTES, 0) == RECORD_BYTES)
			parse_record(state, record);
		return true;
	}
	push_state_close(state);
	return false;
}

bool push_state_write(struct push_state *state)
{
	char record[RECORD_BYTES + 1];

	make_record(state, HEAD, record);
	if (pwrite(state->fd, record, RECORD_BYTES, 0) == RECORD_BYTES)
		return true;
	complain("%s: %s", state->path, strerror(errno));
	return false;
}

void push_state_close(struct push_state *state)
{
	if (state->fd >= 0)
		close(state->fd);
	free(state->path);
	*state = (struct push_state){ .fd = -1 };
}
