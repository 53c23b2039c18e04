/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as people wrote them.
 */
#pragma once

/* The source form of a C++ or Rust symbol; malloc'ed, NULL when the name is not mangled, the text
 * would be too long, or there is no memory. */
char *symbol_demangle(const char *name);

/* The same, but for copy and move constructors of C++, whose names do not distinguish them from
 * others at a glance: Foo::copy_construct(Foo const&), Foo::move_construct(Foo&&). */
char *symbol_demangle_distinct(const char *name);
