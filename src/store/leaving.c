/* SPDX-License-Identifier: Apache-2.0 */
#include "store/leaving.h"

#include <poll.h>
#include <unistd.h>

#include "store/flusher_file.h"

static struct {
	bool is_on;
	int connection; /* in the flusher's own table; -1: not kept */
} leaving = { .connection = -1 };

bool leaving_begin(void)
{
	int connection = flusher.leave ? flusher.leave() : -1;

	if (connection < 0)
		return false;
	leaving.is_on = true;
	leaving.connection = connection;
	/* In the host's table it is not ours to keep. The other process then stores at our end
	 * what the ring has room for. */
	if (flusher.table_error) {
		close(connection);
		leaving.connection = -1;
	}
	flusher_clear_failure();
	return true;
}

bool leaving_is_on(void)
{
	return leaving.is_on;
}

bool leaving_goes_on(void)
{
	struct pollfd polled = { .fd = leaving.connection };

	if (leaving.connection >= 0 && poll(&polled, 1, 0) > 0) {
		close(leaving.connection);
		leaving.connection = -1;
		leaving.is_on = false;
	}
	return leaving.is_on;
}

void leaving_begin_again(void)
{
	if (leaving.is_on)
		leaving.is_on = leaving_begin();
}

void leaving_reset_in_child(void)
{
	leaving.is_on = false;
	leaving.connection = -1;
}
