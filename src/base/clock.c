/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <link.h>
#include <sys/auxv.h>

#include "base/loaded_symbol.h"

#if defined(__aarch64__)
#define NAME "__kernel_clock_gettime"
#else
#define NAME "__vdso_clock_gettime"
#endif

clock_function *clock_in_vdso;
DEFINE_ADDRESS_OF_RECORDER(clock_function *, clock_in_vdso)

/* Before other constructors, and before main(). A name occurs in the vdso once, with one version. */
__attribute__((constructor(101))) static void find_in_vdso(void)
{
	const uintptr_t file = getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)file;
	struct dl_phdr_info vdso = { 0 };
	const ElfW(Sym) *symbol;

	if (!file)
		return;
	vdso.dlpi_phdr = (const ElfW(Phdr) *)(file + header->e_phoff);
	vdso.dlpi_phnum = header->e_phnum;
	for (int i = header->e_phnum; i-- > 0;)
		if (vdso.dlpi_phdr[i].p_type == PT_LOAD)
			vdso.dlpi_addr = file + vdso.dlpi_phdr[i].p_offset - vdso.dlpi_phdr[i].p_vaddr;
	symbol = loaded_symbol_find(&vdso, NAME, STT_FUNC);
	if (symbol)
		__atomic_store_n(&clock_in_vdso, (clock_function *)(vdso.dlpi_addr + symbol->st_value),
		                 __ATOMIC_RELAXED);
}
