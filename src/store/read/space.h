/*
 * The file's address space as readers see it: which module an address of a trace lies in.
 */
#ifndef QUERYPROF_STORE_READ_SPACE_H
#define QUERYPROF_STORE_READ_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Set in an address of a trace that lies in no module; the other bits are what it was in its
 * process. */
#define STORE_NOWHERE (1ull << 62)

/* Where an address of a trace lies. Strings stay valid until store_shutdown(). */
struct store_location {
	const char *path;
	const char *build_id; /* "" when the module has none */
	uint64_t file_size;   /* with mtime_ns tells a module without build id */
	int64_t mtime_ns;
	uint64_t address; /* the ELF virtual address in that object */
	uint64_t offset;  /* from the start of the module's image */
};

/* `address` as in trace_log.trace of the own store's file; also takes an address of this
 * process that no sample has named yet. False: in no module that the store knows or the
 * process has mapped. */
bool store_locate(uint64_t address, struct store_location *location);

/* Makes addresses of this process, read against the code map `generation`, what a trace in
 * the own store's file has for them. A module that the file does not know yet lies at its
 * real place, or nowhere when that is another's. */
void store_place(uint64_t *addresses, size_t count, uint32_t generation);

/* Forgets the modules; strings handed out are freed, too. */
void space_free(void);

void space_before_fork(void);
void space_after_fork(void);

#endif
