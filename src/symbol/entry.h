/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the two functions that every program has (x86-64).
 */
#pragma once

#include <stdbool.h>

#include "symbol/table_builder.h"

/* Adds _start and main of a program, where its code proves them. False: no memory. */
bool entry_collect(const struct elf_image *image, struct symbol_table_builder *builder);
