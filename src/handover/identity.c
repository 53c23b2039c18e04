/* SPDX-License-Identifier: Apache-2.0 */
#include "handover/identity.h"

#include <unistd.h>

#include "base/process_start.h"
#include "handover/script.h"

const struct writer_identity *writer_identity_here(void)
{
	static struct writer_identity identity; /* one row a process, however many writers it has */
	ssize_t size;

	if (identity.process_id == getpid())
		return &identity;
	if (gethostname(identity.hostname, sizeof(identity.hostname)))
		identity.hostname[0] = '\0';
	identity.hostname[sizeof(identity.hostname) - 1] = '\0';
	size = readlink("/proc/self/exe", identity.executable, sizeof(identity.executable) - 1);
	identity.executable[size > 0 ? size : 0] = '\0';
	script_here(identity.executable, identity.script, sizeof(identity.script));
	identity.start_time_ns = process_start_ns();
	identity.process_id = getpid();
	return &identity;
}
