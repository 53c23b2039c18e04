/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read by hand: strtod() listens to the host's locale and rounds. The digits are kept
 * as one integer and a power of ten; the unit is a ratio. 128 bits hold every setting
 * many times over, and what does not fit is refused.
 */
#include "settings/number.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIB (1024 * 1024ll)

static const struct unit {
	const char *of; /* the unit of the setting */
	const char *suffix;
	int64_t factor, divisor; /* suffix = factor / divisor of it */
} units[] = {
	{ "ns", "ns", 1, 1 },
	{ "ns", "us", 1000, 1 },
	{ "ns", "ms", 1000000, 1 },
	{ "ns", "s", 1000000000, 1 },
	{ "ns", "min", 60000000000, 1 },
	{ "ns", "h", 3600000000000, 1 },
	{ "ms", "us", 1, 1000 },
	{ "ms", "ms", 1, 1 },
	{ "ms", "s", 1000, 1 },
	{ "bytes", "bytes", 1, 1 },
	{ "bytes", "KiB", 1024, 1 },
	{ "bytes", "MiB", MIB, 1 },
	{ "bytes", "GiB", 1024 * MIB, 1 },
	{ "bytes", "TiB", 1024 * 1024 * MIB, 1 },
};

static const struct unit *find_unit(const char *of, const char *suffix)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(units[i].of, of) && !strcasecmp(units[i].suffix, suffix))
			return &units[i];
	return NULL;
}

void settings_number_text(int64_t number, const char *unit, char text[SETTINGS_NUMBER_SIZE])
{
	bool is_bare = !number || !*unit;

	snprintf(text, SETTINGS_NUMBER_SIZE, "%lld%s%s", (long long)number, is_bare ? "" : " ",
	         is_bare ? "" : unit);
	for (size_t i = 0; number && i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(units[i].of, unit) && units[i].factor > 1 && number % units[i].factor == 0)
			snprintf(text, SETTINGS_NUMBER_SIZE, "%lld%s", (long long)(number / units[i].factor),
			         units[i].suffix);
}

static bool multiply(__int128 *number, int64_t factor)
{
	return !__builtin_mul_overflow(*number, factor, number);
}

static bool divide(__int128 *number, int64_t divisor)
{
	bool whole = *number % divisor == 0;

	*number /= divisor;
	return whole;
}

/* Digits and fraction; returns the text after them, or NULL if there are none. */
static const char *parse_digits(const char *text, __int128 *number, int *exponent)
{
	bool fraction = false, any = false;

	for (*number = *exponent = 0;; text++) {
		if (*text == '.' && !fraction) {
			fraction = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			return any ? text : NULL;
		any = true;
		if (!multiply(number, 10))
			return NULL;
		*number += *text - '0';
		*exponent -= fraction;
	}
}

bool settings_number(const char *text, const char *unit, int64_t *result)
{
	const struct unit *found;
	bool negative = *text == '-';
	__int128 number;
	int exponent;

	text += *text == '-' || *text == '+';
	text = parse_digits(text, &number, &exponent);
	if (!text)
		return false;
	if (*text == 'e' || *text == 'E') {
		char *end;
		long power = strtol(text + 1, &end, 10);

		if (end == text + 1 || power < -40 || power > 40)
			return false;
		exponent += (int)power;
		text = end;
	}
	text += strspn(text, " ");
	found = *text ? find_unit(unit, text) : NULL;
	if (*text && !found)
		return false;
	if (found && !multiply(&number, found->factor))
		return false;
	for (; exponent > 0 && number; exponent--)
		if (!multiply(&number, 10))
			return false;
	for (; exponent < 0 && number; exponent++)
		if (!divide(&number, 10))
			return false;
	if (found && !divide(&number, found->divisor))
		return false;
	if (number > INT64_MAX)
		return false;
	*result = (int64_t)(negative ? -number : number);
	return true;
}
