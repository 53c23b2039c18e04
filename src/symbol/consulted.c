/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol/consulted.h"

static consulted_file follower;
static void *follower_context;

void consulted_follow(consulted_file each, void *context)
{
	follower = each;
	follower_context = context;
}

void consulted_note(const char *path)
{
	if (follower)
		follower(follower_context, path);
}
