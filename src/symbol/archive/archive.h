/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of static functions that a stripped shared library lost, from the static
 * library that was built of the same source.
 */
#pragma once

#include <stdbool.h>

#include "symbol/table_builder.h"
#include "symbol/elf_image.h"
#include "symbol/why.h"

/* Adds the functions of `image`, a shared library at `path`, that the archive of the same
 * stem proves: libsqlite3.a for libsqlite3.so.0.8.6, beside it or where Debian installs
 * libraries. Adds nothing, and says why, where there is no such archive or it does not
 * match; on machines other than x86-64 there are no names from archives. False: no memory
 * for the collector. */
bool archive_collect(const struct elf_image *image, const char *path, struct symbol_table_builder *builder,
                     struct why *why);
