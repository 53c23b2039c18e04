/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Separate debug files, into which distributions move what they strip.
 */
#pragma once

#include "symbol/elf_image.h"

/* Opens the debug file of an object: by build id below each folder of
 * `debug_path` (separated by colons), else by the .gnu_debuglink of `image`. The file must
 * have the object's build id, or the checksum in the link, and a section `needed`.
 * `image` may be NULL, when the object's file, which was at `path`, is gone. False when
 * there is no such file. */
bool debug_file_open(struct elf_image *debug, const struct elf_image *image, const char *path,
                     const char *build_id, const char *debug_path, const char *needed);

/* Opens the file at the path, if it has that build id and the section. */
bool debug_file_open_at(struct elf_image *debug, const char *path, const char *build_id, const char *needed);

/* Opens what dwz took out of several debug files into one (.gnu_debugaltlink): by
 * build id below each folder of `debug_path`, else by the name in the link, which is
 * relative to the folder of the debug file. */
bool debug_file_open_alternate(struct elf_image *alternate, const struct elf_image *debug, const char *name,
                               const char *build_id, const char *debug_path);

/* Opens the symbols that some distributions leave in a stripped object, packed in
 * its section .gnu_debugdata. False when there are none. */
bool debug_file_open_embedded(struct elf_image *debug, const struct elf_image *image);
