/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as users write them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads all of `text` as a number of `unit` (ns, ms, bytes, or "" for none): digits with a sign, a
 * fraction, an exponent or a unit of their own, as in 10ms, 1.5s, 64MiB, 1e6. The result is exact;
 * false if it is not a number or not whole. */
bool settings_number(const char *text, const char *unit, int64_t *result);
