/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a name or a line is missing: a text for people, put together by those that looked.
 */
#pragma once

struct why {
	char text[256]; /* "": nothing is missing */
};

/* Appends a reason, after "; " if there is one already. The end that does not fit is cut off. */
__attribute__((format(printf, 2, 3))) void why_add(struct why *why, const char *format, ...);
