/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a look-up depends on: those that it opened, and those that were not there.
 */
#pragma once

typedef void (*consulted_file)(void *context, const char *path);

/* From now on `each` is called before a look-up opens a file, or finds that it is not there;
 * NULL: no longer. For a program in which one thread looks up. */
void consulted_follow(consulted_file each, void *context);

/* Called by code that opens a file. */
void consulted_note(const char *path);
