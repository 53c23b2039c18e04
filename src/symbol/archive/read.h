/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the two sides.
 */
#pragma once

#include "symbol/archive/side.h"
#include "symbol/elf_image.h"

/* False: not usable, or no memory. side_free() in any case. */
bool side_read_object(struct code_side *side, const struct elf_image *image);
bool side_read_archive(struct code_side *side, const char *path, uint16_t machine);
