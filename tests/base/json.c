/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON: the library can read its own output again, and reads or refuses foreign input.
 */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define BAD "\xef\xbf\xbd"

/* Control characters, a bidirectional override, bytes that do not form a character, and whole characters. */
static const char odd[] = "a\"\\\n<\x7f\xc3\xa4\xe2\x80\xae\xff\xed\xa0\x80\xf0\x9f\x98\x80\xe2\x82";
static const char odd_json[] = "a\\\"\\\\\\u000a<\\u007f\xc3\xa4\\u202e\\ufffd\\ufffd\\ufffd\\ufffd"
			       "\xf0\x9f\x98\x80\\ufffd\\ufffd";

static void texts_are_written(void **state)
{
	char written[256] = "", put[JSON_TEXT_MAX(sizeof(odd)) + 1], expected[256];
	FILE *out = fmemopen(written, sizeof(written), "w");

	(void)state;
	json_write_part(out, odd, "");
	json_write_text(out, "<", "<");
	fclose(out);
	snprintf(expected, sizeof(expected), "%s\"\\u003c\"", odd_json);
	assert_string_equal(written, expected);

	/* The size includes the zero here, which is not a valid character. */
	*json_put_text(put, odd, sizeof(odd)) = 0;
	snprintf(expected, sizeof(expected), "\"%s\\ufffd\"", odd_json);
	assert_string_equal(put, expected);
}

static void made_json_stays(void **state)
{
	char written[256] = "";
	FILE *out = fmemopen(written, sizeof(written), "w");
	const char made[] = "{\"a\":\"\\n\xe2\x80\xae\xff\"}{";

	(void)state;
	json_write_made(out, made, sizeof(made) - 2);
	json_write_made(out, made, 0);
	fclose(out);
	assert_string_equal(written, "{\"a\":\"\\n\\u202e\\ufffd\"}");
}

/* `expected` is the decoded text; NULL: the text is refused. The sanitizer watches the ends of both. */
static void check_text(const char *json, const char *expected)
{
	char *copy = strdup(json), *room = malloc(strlen(json) + 1), *end = room;
	const char *at = copy, *text = json_read_text(&at, &end);

	if (!expected) {
		assert_null(text);
		assert_ptr_equal(at, copy);
	} else {
		assert_string_equal(text, expected);
		assert_ptr_equal(end, text + strlen(text) + 1);
		assert_string_equal(at, "");
	}
	free(copy);
	free(room);
}

static void texts_are_read(void **state)
{
	(void)state;
	check_text(" \"\"", "");
	check_text("\"\\u0041\"", "A");
	check_text("\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"", "\b\f\n\r\t/\\\"");
	check_text("\"\\u001B\\u00e4\\u2028\"", "\x1b\xc3\xa4\xe2\x80\xa8");
	check_text("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
	/* A zero, half of a pair, and two first halves are not characters. */
	check_text("\"\\u0000\"", BAD);
	check_text("\"\\ud83d\\u0021\"", BAD "!");
	check_text("\"\\ude00\\ud83d\\ud83d\"", BAD BAD BAD);
	check_text("\"\\u1\"", NULL);
	check_text("\"\\u12", NULL);
	check_text("\"\\u00g0\"", NULL);
	check_text("\"\\q\"", NULL);
	check_text("\"a\\", NULL);
	check_text("\"\\ud83d", NULL);
	check_text("\"\\ud83d\\", NULL);
	check_text("\"a\nb\"", NULL);
	check_text("\"a", NULL);
	check_text("a", NULL);
	check_text("", NULL);
}

static void check_integer(const char *json, bool is_one, uint64_t expected)
{
	const char *at = json;
	uint64_t number;

	if (json_read_integer(&at, &number) != is_one || (is_one && number != expected))
		fail_msg("'%s' is read as %llu", json, (unsigned long long)number);
	assert_string_equal(at, is_one ? "" : json + strspn(json, " "));
}

static void integers_are_read(void **state)
{
	(void)state;
	check_integer(" 0", true, 0);
	check_integer("18446744073709551615", true, UINT64_MAX);
	check_integer("-1", true, UINT64_MAX);
	check_integer("-9223372036854775808", true, 1ull << 63);
	check_integer("18446744073709551616", false, 0);
	check_integer("-9223372036854775809", false, 0);
	check_integer("-18446744073709551615", false, 0);
	check_integer(" +1", false, 0);
	check_integer("01", false, 0);
	check_integer("-", false, 0);
	check_integer("- 1", false, 0);
	check_integer("x", false, 0);
	check_integer("", false, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_written),
		cmocka_unit_test(made_json_stays),
		cmocka_unit_test(texts_are_read),
		cmocka_unit_test(integers_are_read),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
