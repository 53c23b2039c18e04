/* SPDX-License-Identifier: Apache-2.0 */
#include "store/write/other_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process_start.h"
#include "base/task_file.h"
#include "handover/identity.h"

#define PASSWD_BYTES 65536 /* of the file, at most */

/* Not by getpwuid(), which loads libraries and asks servers. A line is name:password:number:... */
static void name_user(unsigned id, char *name, size_t size)
{
	const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(PASSWD_BYTES), found[33];
	const ssize_t length = text ? read(fd, text, PASSWD_BYTES - 1) : 0;
	unsigned number;

	snprintf(name, size, "%u", id);
	if (text)
		text[length < 0 ? 0 : length] = '\0';
	for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
		if (sscanf(line, "%32[^:\n]:%*[^:\n]:%u:", found, &number) == 2 && number == id) {
			snprintf(name, size, "%s", found);
			break;
		}
	free(text);
	if (fd >= 0)
		close(fd);
}

struct other_process other_process_describe(const struct writer_identity *recorded, uint32_t process_id)
{
	struct other_process other = { .program = "" };
	char status[1024];
	const char *line;
	unsigned id;

	if (!process_began_at((uint32_t)recorded->process_id, recorded->start_time_ns) ||
	    !task_file_read_other(process_id, "comm", other.program, sizeof(other.program)))
		return other;
	other.program[strcspn(other.program, "\n")] = '\0';
	if (task_file_read_other(process_id, "status", status, sizeof(status)) &&
	    (line = strstr(status, "\nUid:")) && sscanf(line, "\nUid: %u", &id) == 1)
		name_user(id, other.user, sizeof(other.user));
	return other;
}
