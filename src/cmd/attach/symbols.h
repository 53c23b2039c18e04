/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic symbols of an object that is mapped in another process, or of a file.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The memory to read an object from: a process, or its file. */
struct object_memory {
	pid_t process;    /* 0: in `file` */
	const void *file; /* the whole file, */
	size_t size;      /* its size */
};

struct symbols {
	Elf64_Sym *symbols;
	char *strings;
	size_t count, strings_size;
	uint64_t bias; /* a symbol's address is its value and this */
};

/* Reads so many bytes at an address of the object. */
bool object_read(const struct object_memory *memory, uint64_t address, void *to, size_t size);

/* Reads the symbols of the object at that address, which is 0 in a file. False: it is not an ELF object
 * for x86-64, or has no symbols. Free them in both cases. */
bool symbols_read(struct symbols *symbols, const struct object_memory *memory, uint64_t base);
void symbols_free(struct symbols *symbols);

/* The difference between an address in the process and the one in the object's file. False: not an ELF
 * object for x86-64. */
bool symbols_find_bias(const struct object_memory *memory, uint64_t base, uint64_t *bias);

/* The address of the function or variable; 0: the object does not define it. */
uint64_t symbols_find(const struct symbols *symbols, const char *name);

/* The name of the function that contains the address; NULL: it has no name. */
const char *symbols_name(const struct symbols *symbols, uint64_t address);
