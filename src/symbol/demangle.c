/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty demangles.
 *
 * Its two demanglers are called directly: the entry that tries every language
 * also knows some whose code ends the process when memory runs out. Their own
 * limits on length and recursion stay on; a name beyond them stays as it is.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = DMGL_PARAMS | DMGL_ANSI };

char *symbol_demangle(const char *name)
{
	/* Rust's legacy scheme looks like C++; only Rust's demangler drops its hash. */
	if (name[0] != '_')
		return NULL;
	char *text = rust_demangle(name, OPTIONS);
	return text ? text : cplus_demangle_v3(name, OPTIONS);
}

typedef struct demangle_component component;

static char *print(const component *of)
{
	size_t size;

	return cplus_demangle_print(OPTIONS, (component *)of, 32, &size);
}

static bool is_same(const component *one, const component *other)
{
	char *a = print(one), *b = print(other);
	bool is = a && b && strcmp(a, b) == 0;

	free(a);
	free(b);
	return is;
}

/* The class of a constructor's name, NULL: it is another's. */
static const component *class_of(const component *name)
{
	if (name && name->type == DEMANGLE_COMPONENT_QUAL_NAME && name->u.s_binary.right &&
	    name->u.s_binary.right->type == DEMANGLE_COMPONENT_CTOR)
		return name->u.s_binary.left;
	return NULL;
}

/* The kind of constructor that its only parameter shows; NULL: none. */
static const char *kind_of(const component *function, const component *class)
{
	const component *type = function->u.s_binary.right, *list, *of;

	if (!type || type->type != DEMANGLE_COMPONENT_FUNCTION_TYPE)
		return NULL;
	list = type->u.s_binary.right;
	if (!list || list->type != DEMANGLE_COMPONENT_ARGLIST || list->u.s_binary.right)
		return NULL;
	of = list->u.s_binary.left;
	if (of && of->type == DEMANGLE_COMPONENT_RVALUE_REFERENCE)
		return is_same(of->u.s_binary.left, class) ? "move_construct" : NULL;
	if (!of || of->type != DEMANGLE_COMPONENT_REFERENCE)
		return NULL;
	of = of->u.s_binary.left;
	if (of && of->type == DEMANGLE_COMPONENT_CONST)
		of = of->u.s_binary.left;
	return of && is_same(of, class) ? "copy_construct" : NULL;
}

/* `text` is the class, two colons, the constructor's own name, and its parameters. */
static char *replace_name(const char *text, const char *class, const char *kind)
{
	size_t before = strlen(class) + 2;
	const char *parameters = strlen(text) > before ? strchr(text + before, '(') : NULL;
	char *made;

	if (!parameters || strncmp(text, class, before - 2) != 0 ||
	    !(made = malloc(before + strlen(kind) + strlen(parameters) + 1)))
		return NULL;
	memcpy(made, text, before);
	strcpy(made + before, kind);
	return strcat(made, parameters);
}

static char *distinguish(const char *name, const char *text)
{
	void *memory = NULL;
	const component *function = cplus_demangle_v3_components(name, OPTIONS, &memory);
	const component *class = function && function->type == DEMANGLE_COMPONENT_TYPED_NAME
	                                 ? class_of(function->u.s_binary.left)
	                                 : NULL;
	const char *kind = class ? kind_of(function, class) : NULL;
	char *of = kind ? print(class) : NULL, *made = of ? replace_name(text, of, kind) : NULL;

	free(of);
	free(memory);
	return made;
}

char *symbol_demangle_distinct(const char *name)
{
	char *text = symbol_demangle(name), *made;

	/* C1 and C2: only those are constructors. */
	if (!text || strncmp(name, "_Z", 2) != 0 || !strstr(name, "C") || !strchr(text, '&'))
		return text;
	made = distinguish(name, text);
	if (!made)
		return text;
	free(text);
	return made;
}
