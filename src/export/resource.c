/* SPDX-License-Identifier: Apache-2.0 */
#include "export/resource.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define ATTRIBUTES "OTEL_RESOURCE_ATTRIBUTES"

/* False: no memory. The first value of a key stays. */
static bool add(struct resource *resource, const char *key, char *text, int64_t number)
{
	for (size_t i = 0; i < resource->items.count; i++)
		if (!strcmp(resource->items.items[i].key, key)) {
			free(text);
			return true;
		}
	struct resource_item item = { .key = strdup(key), .text = text, .number = number };
	if (item.key && vector_push(&resource->items, item))
		return true;
	free(item.key);
	free(text);
	return false;
}

static bool add_text(struct resource *resource, const char *key, const char *text)
{
	char *repaired;

	if (!text || !text[0])
		return true;
	repaired = text_repair(text, strlen(text));
	return repaired && add(resource, key, repaired, 0);
}

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text + strspn(text, " \t");
}

/* Decodes in place. False: a % without two hexadecimal digits. */
static bool decode_percent(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '%') {
			if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
				return false;
			char digits[3] = { text[1], text[2], 0 };
			*to++ = (char)strtol(digits, NULL, 16);
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
	return true;
}

/* Reads key=value,key=value, with %xx in values. resource NULL: only checks. Returns the error. */
static const char *read_attributes(struct resource *resource, bool *has_memory)
{
	const char *said = getenv(ATTRIBUTES);
	char *copy = strdup(said ? said : ""), *rest = copy, *pair;
	const char *wrong = NULL;

	*has_memory = copy != NULL;
	while (!wrong && *has_memory && (pair = strsep(&rest, ","))) {
		char *value = strchr(pair, '=');

		if (!*trim(pair))
			continue;
		if (value)
			*value++ = 0;
		pair = trim(pair);
		if (!value || !*pair)
			wrong = "expected KEY=VALUE,KEY=VALUE";
		else if (!decode_percent(value = trim(value)))
			wrong = "a % without two hexadecimal digits";
		else if (resource)
			*has_memory = add_text(resource, pair, value);
	}
	free(copy);
	return wrong;
}

const char *resource_complaint(void)
{
	bool has_memory;

	return read_attributes(NULL, &has_memory);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool resource_fill(struct resource *resource, const char *service, const char *program, const char *host,
                   int64_t process_id)
{
	bool has_memory;

	if (!service || !service[0])
		service = getenv("OTEL_SERVICE_NAME");
	if (!add_text(resource, "service.name", service))
		return false;
	read_attributes(resource, &has_memory);
	return has_memory &&
	       add_text(resource, "service.name", program[0] ? base_name(program) : "unknown_service") &&
	       add_text(resource, "host.name", host) &&
	       (!process_id || add(resource, "process.pid", NULL, process_id));
}

void resource_free(struct resource *resource)
{
	for (size_t i = 0; i < resource->items.count; i++) {
		free(resource->items.items[i].key);
		free(resource->items.items[i].text);
	}
	vector_free(&resource->items);
}

/* --- labels of series ------------------------------------------------------------- */

char *resource_label_name(const char *key)
{
	/* Names that begin with two underscores are reserved for the server. */
	bool has_letter = isalpha((unsigned char)key[0]);
	char *name = text_format("%s%s", has_letter ? "" : "label_", key);

	for (char *at = name; at && *at; at++)
		if (!isascii((unsigned char)*at) || !isalnum((unsigned char)*at))
			*at = '_';
	return name;
}

bool resource_has_label(const struct resource *resource, size_t count, const char *name)
{
	bool has_it = false;

	for (size_t i = 0; !has_it && i < count; i++) {
		char *label = resource_label_name(resource->items.items[i].key);

		has_it = label && !strcmp(label, name);
		free(label);
	}
	return has_it;
}
