/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The setting trace_log_ring_bytes.
 */
#pragma once

#include <stddef.h>

size_t ring_size(void);

/* A ring has been made, so its size is fixed. */
void ring_size_fix(void);
