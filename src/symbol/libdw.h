/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elfutils' libelf and libdw, loaded at the first look-up of a name.
 */
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <libelf.h>
#include <lzma.h>
#include <zlib.h>

/* The functions in use, by their own names. */
#define LIBDW_FUNCTIONS(FUNCTION)                                                                            \
	FUNCTION(elf_version)                                                                                \
	FUNCTION(elf_begin)                                                                                  \
	FUNCTION(elf_memory)                                                                                 \
	FUNCTION(elf_cntl)                                                                                   \
	FUNCTION(elf_end)                                                                                    \
	FUNCTION(elf64_getehdr)                                                                              \
	FUNCTION(elf_getshdrnum)                                                                             \
	FUNCTION(elf_getshdrstrndx)                                                                          \
	FUNCTION(elf_getscn)                                                                                 \
	FUNCTION(elf64_getshdr)                                                                              \
	FUNCTION(elf_strptr)                                                                                 \
	FUNCTION(elf_getdata)                                                                                \
	FUNCTION(elf_getdata_rawchunk)                                                                       \
	FUNCTION(gelf_getsym)                                                                                \
	FUNCTION(gelf_getrela)                                                                               \
	FUNCTION(dwelf_elf_gnu_build_id)                                                                     \
	FUNCTION(dwelf_elf_gnu_debuglink)                                                                    \
	FUNCTION(dwelf_dwarf_gnu_debugaltlink)                                                               \
	FUNCTION(dwarf_begin_elf)                                                                            \
	FUNCTION(dwarf_setalt)                                                                               \
	FUNCTION(dwarf_end)                                                                                  \
	FUNCTION(dwarf_next_unit)                                                                            \
	FUNCTION(dwarf_get_units)                                                                            \
	FUNCTION(dwarf_ranges)                                                                               \
	FUNCTION(dwarf_dieoffset)                                                                            \
	FUNCTION(dwarf_offdie)                                                                               \
	FUNCTION(dwarf_getsrclines)                                                                          \
	FUNCTION(dwarf_onesrcline)                                                                           \
	FUNCTION(dwarf_lineaddr)                                                                             \
	FUNCTION(dwarf_lineendsequence)                                                                      \
	FUNCTION(dwarf_linesrc)                                                                              \
	FUNCTION(dwarf_lineno)                                                                               \
	FUNCTION(dwarf_cu_getdwarf)                                                                          \
	FUNCTION(dwarf_child)                                                                                \
	FUNCTION(dwarf_siblingof)                                                                            \
	FUNCTION(dwarf_tag)                                                                                  \
	FUNCTION(dwarf_attr)                                                                                 \
	FUNCTION(dwarf_attr_integrate)                                                                       \
	FUNCTION(dwarf_formstring)                                                                           \
	FUNCTION(dwarf_formudata)                                                                            \
	FUNCTION(dwarf_getsrcfiles)                                                                          \
	FUNCTION(dwarf_filesrc)                                                                              \
	FUNCTION(dwarf_next_cfi)                                                                             \
	FUNCTION(dwfl_begin)                                                                                 \
	FUNCTION(dwfl_linux_proc_report)                                                                     \
	FUNCTION(dwfl_linux_proc_find_elf)                                                                   \
	FUNCTION(dwfl_report_end)                                                                            \
	FUNCTION(dwfl_attach_state)                                                                          \
	FUNCTION(dwfl_thread_state_registers)                                                                \
	FUNCTION(dwfl_getthread_frames)                                                                      \
	FUNCTION(dwfl_frame_pc)                                                                              \
	FUNCTION(dwfl_end)

/* Functions of the libraries that libdw itself uses; NULL where it was built without. */
#define LIBDW_COMPANIONS(FUNCTION)                                                                           \
	FUNCTION(crc32)                                                                                      \
	FUNCTION(lzma_stream_buffer_decode)

struct libdw {
#define LIBDW_MEMBER(name) __typeof__(name) *name;
	LIBDW_FUNCTIONS(LIBDW_MEMBER)
	LIBDW_COMPANIONS(LIBDW_MEMBER)
#undef LIBDW_MEMBER
	int (*dwfl_frame_reg)(Dwfl_Frame *frame, unsigned number,
	                      Dwarf_Word *value); /* NULL before 0.188, which declares it */
};

/* NULL when it is not installed or cannot be used in this process. The first call
 * loads it. */
const struct libdw *libdw_load(void);
