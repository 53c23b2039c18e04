/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the samples of the page's stacks were taken, so that the page can sum up the stacks of a part of the
 * time, of a thread or of a label.
 *
 * A file may have more samples than a page can carry. Then one point stands for a fixed amount of time: a
 * point each time that the sum of the samples' values passes a multiple of it. So sums over points are
 * unbiased, and long waits are never missed.
 */
#pragma once

#include <sqlite3.h>

/* Appends `"times":{...}` to stdout, and makes the rows of temp.page_origins. After page/stacks.sql. A
 * command_result.
 *
 * points: numbers in digits of base 32, the lowest first, in which the letters of the second half of the
 * alphabet are followed by another digit. Four numbers for each point: the ms since the point before (the
 * first one since from_ms), the row of `stacks`, the row of `origins`, and the value in unit_ms. A wait's
 * point is its end. thinned: whether a point may stand for several samples. */
int page_times_print(sqlite3 *db);
