/*
 * elfutils' libdw, loaded when the first line is asked for.
 */
#ifndef QUERYPROF_SYMBOL_LIBDW_H
#define QUERYPROF_SYMBOL_LIBDW_H

#include <elfutils/libdw.h>
#include <libelf.h>

/* The functions that we use, by their own names. */
#define LIBDW_FUNCTIONS(FUNCTION) \
	FUNCTION(elf_version)     \
	FUNCTION(elf_begin)       \
	FUNCTION(elf_cntl)        \
	FUNCTION(elf_end)         \
	FUNCTION(dwarf_begin_elf) \
	FUNCTION(dwarf_end)       \
	FUNCTION(dwarf_get_units) \
	FUNCTION(dwarf_ranges)    \
	FUNCTION(dwarf_dieoffset) \
	FUNCTION(dwarf_offdie)    \
	FUNCTION(dwarf_getsrc_die) \
	FUNCTION(dwarf_linesrc)   \
	FUNCTION(dwarf_next_cfi)  \
	FUNCTION(dwarf_lineno)

struct libdw {
#define LIBDW_MEMBER(name) __typeof__(name) *name;
	LIBDW_FUNCTIONS(LIBDW_MEMBER)
#undef LIBDW_MEMBER
};

/* NULL when it is not installed or cannot be used in this process. The first call
 * loads it. */
const struct libdw *libdw_load(void);

#endif
