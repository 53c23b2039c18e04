/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libiberty demangles.
 *
 * Its two demanglers are called directly: the entry that tries every language
 * also knows some whose code ends the process when memory runs out. Their own
 * limits on length and recursion stay on; a name beyond them stays as it is.
 *
 * They have none on the text. Each part of a name may stand for the one before twice, so
 * 500 bytes can be terabytes, and SQL or a trace file may bring any name. A demangler can
 * only be ended by a jump out of it; what it has lies on the stack.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

enum { OPTIONS = DMGL_PARAMS | DMGL_ANSI };

#define TEXT_MAX 65536 /* longer texts are of no use to people */

/* --- the text ------------------------------------------------------------------------- */

typedef int demangler(const char *name, int options, demangle_callbackref add, void *context);

/* A text in the making. */
struct text {
	VECTOR(char) bytes;
	jmp_buf out; /* of the demangler */
};

static void add(const char *part, size_t size, void *context)
{
	struct text *text = context;
	size_t count = text->bytes.count;

	if (size > TEXT_MAX - count || !vector_reserve(&text->bytes, count + size + 1))
		longjmp(text->out, 1);
	memcpy(text->bytes.items + count, part, size);
	text->bytes.items[count + size] = 0;
	text->bytes.count += size;
}

static bool make(struct text *text, demangler *scheme, const char *name)
{
	if (setjmp(text->out))
		return false;
	return scheme(name, OPTIONS, add, text) && text->bytes.count;
}

static char *demangle(demangler *scheme, const char *name)
{
	struct text text = { .bytes = { 0 } };

	if (make(&text, scheme, name))
		return text.bytes.items;
	vector_free(&text.bytes);
	return NULL;
}

#define RUST_NAME_MAX 16384
#define LIFETIMES_DIGITS_MAX 3

/* Rust's demangler prints nothing of a part that is left out, and goes through it as through the others:
 * a function or a trait in it ("F", "D") may have any number of lifetimes ("G", the number, "_"), and
 * nine digits are centuries. It also has no limit on the length: each letter outside of ASCII moves
 * those behind it. A name that merely looks so stays as it is. */
static bool is_fit_for_rust(const char *name)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (name[1] != 'R')
		return true; /* its legacy scheme has none of these */
	if (strnlen(name, RUST_NAME_MAX + 1) > RUST_NAME_MAX)
		return false;
	while ((name = strpbrk(name, "FD"))) {
		if (*++name != 'G')
			continue;
		size_t count = strspn(++name, digits);
		if (count > LIFETIMES_DIGITS_MAX && name[count] == '_')
			return false;
		name += count;
	}
	return true;
}

char *symbol_demangle(const char *name)
{
	/* Rust's legacy scheme looks like C++; only Rust's demangler drops its hash. */
	if (name[0] != '_')
		return NULL;
	char *text = is_fit_for_rust(name) ? demangle(rust_demangle_callback, name) : NULL;
	return text ? text : demangle(cplus_demangle_v3_callback, name);
}

/* --- constructors --------------------------------------------------------------------- */

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
