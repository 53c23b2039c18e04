/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: every counter of every part as one table, for system.metrics and
 * qp_metrics().
 */
#pragma once

#include "queryprof.h"

/* Calls `each` until it returns non-zero. */
void metrics_each(int (*each)(void *context, const qp_metric *metric), void *context);
