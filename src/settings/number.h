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

/* Writes a number of `unit` as a user would, with the largest unit that makes it whole: 10us, 1h, 64MiB. */
#define SETTINGS_NUMBER_SIZE 32
void settings_number_text(int64_t number, const char *unit, char text[SETTINGS_NUMBER_SIZE]);
