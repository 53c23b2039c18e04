/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED size_t loaded_function(const char *text);

EXPORTED int loaded_variable = 5;

size_t loaded_function(const char *text)
{
	return strlen(text) + (size_t)loaded_variable;
}
