/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/other_process.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process_start.h"
#include "base/task_file.h"
#include "handover/identity.h"

#define PASSWD_BYTES 65536  /* of the file, at most */
#define CLOCK_NS 1000000000 /* by which the clock may have been set since a start was noted */

/* A line of /etc/passwd: name:password:number:... False: it is of another user, or cut. */
static bool is_line_of(const char *line, unsigned id, size_t *name_size)
{
	const char *password = strchr(line, ':'), *number = password ? strchr(password + 1, ':') : NULL;
	char *end;

	if (!number || strtoul(number + 1, &end, 10) != id || *end != ':')
		return false;
	*name_size = (size_t)(password - line);
	return true;
}

/* Not by getpwuid(), which loads libraries and asks servers. */
static void name_user(unsigned id, char *name, size_t size)
{
	const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(PASSWD_BYTES), *end;
	const ssize_t length = text ? read(fd, text, PASSWD_BYTES - 1) : 0;
	size_t name_size;

	snprintf(name, size, "%u", id);
	if (text)
		text[length < 0 ? 0 : length] = '\0';
	for (char *line = text; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (is_line_of(line, id, &name_size)) {
			snprintf(name, size, "%.*s", (int)name_size, line);
			break;
		}
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

static bool is_same_start(uint32_t process_id, int64_t start_ns)
{
	int64_t start;

	return process_start_of(process_id, &start) && llabs(start - start_ns) < CLOCK_NS;
}

struct other_process other_process_describe(const struct writer_identity *recorded, uint32_t process_id,
                                            int64_t asked_ns)
{
	struct other_process other = { .program = "" };
	char status[1024], name[16];
	const char *line;
	int64_t start;
	unsigned id;

	if (!is_same_start((uint32_t)recorded->process_id, recorded->start_time_ns) ||
	    !process_start_of(process_id, &start) || start > asked_ns + CLOCK_NS)
		return other;
	if (task_file_read_other(process_id, "comm", name, sizeof(name)) &&
	    task_file_read_other(process_id, "status", status, sizeof(status)) &&
	    (line = strstr(status, "\nUid:")) && sscanf(line, "\nUid: %u", &id) == 1 &&
	    is_same_start(process_id, start)) { /* it is still that one */
		snprintf(other.program, sizeof(other.program), "%.*s", (int)strcspn(name, "\n"), name);
		name_user(id, other.user, sizeof(other.user));
	}
	return other;
}
