/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times on the command line: a base (a date, now, the end of the file, …), plus or minus a duration. A
 * duration alone means that long ago. All times are UTC.
 */
#include "cmd/line/moment.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

static const struct {
	const char *name;
	int64_t ns;
} units[] = {
	{ "us", SECOND / 1000000 }, { "ms", SECOND / 1000 }, { "s", SECOND },
	{ "min", 60 * SECOND },     { "h", 3600 * SECOND },  { "d", DAY },
	{ "w", 7 * DAY },
};

bool moment_parse_duration(const char *text, int64_t *ns)
{
	char *end;

	if (!strchr("0123456789", text[0]))
		return false;
	double number = strtod(text, &end);
	for (size_t i = 0; end[0] && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0 && number * (double)units[i].ns < 9e18) {
			*ns = (int64_t)(number * (double)units[i].ns);
			return true;
		}
	return false;
}

/* Reads a number of exactly `digits` digits, and advances past it. */
static bool parse_digits(const char **at, int digits, int *number)
{
	*number = 0;
	for (; digits > 0; digits--, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*number = *number * 10 + (**at - '0');
	}
	return true;
}

static bool parse_character(const char **at, char wanted)
{
	if (**at != wanted)
		return false;
	(*at)++;
	return true;
}

/* Reads Z, +01:00, or nothing: +350ms is a duration. Advances past it. */
static void parse_zone(const char **at, int64_t *ns)
{
	int sign = **at == '-' ? 1 : -1, hours, minutes;
	const char *end = *at + 1;

	if (parse_character(at, 'Z') || (**at != '+' && **at != '-') || !parse_digits(&end, 2, &hours))
		return;
	parse_character(&end, ':');
	if (!parse_digits(&end, 2, &minutes) || !strchr("+-", *end))
		return;
	*ns += sign * (hours * 60 + minutes) * 60 * SECOND;
	*at = end;
}

/* 2026-11-20[ 09:30[:15[.25]][Z|+01:00]]; advances past it. */
static bool parse_date(const char **at, int64_t *ns)
{
	struct tm date = { 0 };
	int64_t fraction = 0;

	if (!parse_digits(at, 4, &date.tm_year) || !parse_character(at, '-') ||
	    !parse_digits(at, 2, &date.tm_mon) || !parse_character(at, '-') ||
	    !parse_digits(at, 2, &date.tm_mday))
		return false;
	bool has_time = **at == 'T' || (**at == ' ' && (*at)[1] >= '0' && (*at)[1] <= '9');
	if (has_time) {
		(*at)++;
		if (!parse_digits(at, 2, &date.tm_hour) || !parse_character(at, ':') ||
		    !parse_digits(at, 2, &date.tm_min))
			return false;
		if (parse_character(at, ':') && !parse_digits(at, 2, &date.tm_sec))
			return false;
		if (parse_character(at, '.'))
			for (int64_t place = SECOND / 10; **at >= '0' && **at <= '9'; (*at)++, place /= 10)
				fraction += place * (**at - '0');
	}
	date.tm_year -= 1900;
	date.tm_mon -= 1;
	struct tm asked = date;
	*ns = timegm(&date) * SECOND + fraction;
	/* Times in ns end in 2262, and timegm() turns 30 February into another day. */
	if (asked.tm_year < 0 || asked.tm_year > 361 || asked.tm_mon != date.tm_mon ||
	    asked.tm_mday != date.tm_mday || asked.tm_hour != date.tm_hour || asked.tm_min != date.tm_min)
		return false;
	if (has_time)
		parse_zone(at, ns);
	return true;
}

static bool parse_base(const char **at, const struct moment_bases *bases, int64_t *ns)
{
	int64_t midnight = bases->now - bases->now % DAY;
	const struct {
		const char *word;
		int64_t ns;
	} words[] = {
		{ "now", bases->now },     { "today", midnight }, { "yesterday", midnight - DAY },
		{ "start", bases->start }, { "end", bases->end },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(*at, words[i].word, strlen(words[i].word)) == 0) {
			*at += strlen(words[i].word);
			*ns = words[i].ns;
			return true;
		}
	return parse_date(at, ns);
}

bool moment_parse(const char *text, const struct moment_bases *bases, int64_t *ns)
{
	const char *at = text;
	int64_t duration;

	if (moment_parse_duration(text, &duration))
		return !__builtin_sub_overflow(bases->now, duration, ns);
	if (!parse_base(&at, bases, ns))
		return false;
	if (!*at)
		return true;
	if ((*at != '+' && *at != '-') || !moment_parse_duration(at + 1, &duration))
		return false;
	return !__builtin_add_overflow(*ns, *at == '-' ? -duration : duration, ns);
}
