/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of a trace file for Prometheus.
 */
#pragma once

#include <sqlite3.h>

/* Prints them in the text format of OpenMetrics to stdout. most: statements with labels of their own; NULL:
 * the default. A command_result. */
int metrics_print(sqlite3 *db, const char *most);
