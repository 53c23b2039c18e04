/*
 * Names of static functions that a stripped shared library lost, from the static
 * library that was built of the same source.
 */
#ifndef QUERYPROF_SYMBOL_ARCHIVE_ARCHIVE_H
#define QUERYPROF_SYMBOL_ARCHIVE_ARCHIVE_H

#include <stdbool.h>

#include "symbol/elf_image.h"

struct symbol_collector;

/* Adds the functions of `image`, a shared library at `path`, that the archive of
 * the same stem beside it proves: libsqlite3.a for libsqlite3.so.0.8.6. Adds
 * nothing where there is no such archive, it does not match, or the machine is not
 * x86-64. False: no memory for the collector. */
bool archive_collect(const struct elf_image *image, const char *path, struct symbol_collector *collector);

#endif
