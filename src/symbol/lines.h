/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source files, lines and inlined functions of one object, from its DWARF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf_image.h"
#include "symbol/extent.h"
#include "symbol/frame.h"

/* One thread at a time uses these functions, for all objects together. */
struct lines;

/* The line information in `image`; NULL when it has none. Otherwise the image is
 * taken over: the caller's is closed. Parts that it shares with other debug files are
 * searched below the folders of `debug_path`. */
struct lines *lines_open(struct elf_image *image, const char *debug_path);
void lines_close(struct lines *lines);

/* For a program that keeps copies of debug information, decompressed; see cmd/file/debug_copy.h. `open`
 * replaces the image by its copy, if there is one. `make` gets an image whose sections libdw has
 * decompressed. */
struct lines_copies {
	bool (*open)(struct elf_image *image);
	void (*make)(const struct elf_image *image);
};

/* NULL, as at first: there are none. For a program in which one thread looks up. */
void lines_use_copies(const struct lines_copies *copies);

/* `*file` lives as long as `lines`. Cuts the extent. */
bool lines_find(struct lines *lines, uint64_t address, const char **file, int *line, struct extent *extent);

/* The frames at the address, see symbol_frames(), as the DWARF names them. Cuts the extent. */
size_t lines_frames(struct lines *lines, uint64_t address, struct symbol_frame *frames, size_t room,
                    struct extent *extent);
