/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: every counter of every part as one table, for system.metrics and
 * qp_metrics().
 */
#ifndef QUERYPROF_SQL_METRICS_H
#define QUERYPROF_SQL_METRICS_H

#include "queryprof.h"

/* Calls `each` until it returns non-zero. */
void metrics_each(int (*each)(void *context, const qp_metric *metric), void *context);

#endif
