/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/consulted.h"

#include <stddef.h>

static consulted_file tell;
static void *tell_context;

void consulted_tell(consulted_file each, void *context)
{
	tell = each;
	tell_context = context;
}

void consulted_note(const char *path)
{
	if (tell)
		tell(tell_context, path);
}
