/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recorded processes do at this moment, for the page: what `queryprof dump` prints, without the
 * machine's folders.
 */
#pragma once

/* Prints it as JSON on stdout. `known` is false if nobody records to the file now. A command_result. */
int now_print(const char *path);
