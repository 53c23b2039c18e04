/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times on the command line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The moments that a time may refer to, ns since 1970. */
struct moment_bases {
	int64_t now, start, end; /* start, end: of the file */
};

/* A number with its unit, such as 50ms. False: the text is not a duration. */
bool moment_parse_duration(const char *text, int64_t *ns);

/* ns since 1970. False: the text is not a time. */
bool moment_parse(const char *text, const struct moment_bases *bases, int64_t *ns);
