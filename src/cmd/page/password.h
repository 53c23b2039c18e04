/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The password of a page that is served to other machines. It comes from a file, because other users see the
 * words of a command line.
 */
#pragma once

#include <stdbool.h>

/* The value of the request's header "Authorization" that has the password: HTTP's Basic scheme, user
 * "queryprof". Malloc'ed; NULL after a complaint. */
char *password_header(const char *path);

/* Whether they are equal. Takes the same time for all `given` texts of one length. given: NULL is wrong. */
bool password_matches(const char *expected, const char *given);
