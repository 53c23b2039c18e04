/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/language.h"

#include <string.h>

#include "base/loaded_symbol.h"

#define FILE_BYTES 512
#define FUNCTION_BYTES 160

uintptr_t language_symbol(const struct dl_phdr_info *info, const char *name, unsigned type)
{
	const ElfW(Sym) *symbol = loaded_symbol_find(info, name, type);

	return symbol ? info->dlpi_addr + symbol->st_value : 0;
}

/* Not inside a UTF-8 character. */
static uint16_t cut(const char *text, size_t size, size_t most)
{
	if (size > most)
		for (size = most; size && ((unsigned char)text[size] & 0xc0) == 0x80;)
			size--;
	return (uint16_t)size;
}

size_t language_put_frame(char *to, size_t room, uint32_t line, const char *file, size_t file_size,
                          const char *function, size_t function_size)
{
	struct call_frame head = { line, cut(file, file_size, FILE_BYTES),
		                   cut(function, function_size, FUNCTION_BYTES) };
	size_t size = sizeof(head) + head.file_size + head.function_size;

	if (size > room)
		return 0;
	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), file, head.file_size);
	memcpy(to + sizeof(head) + head.file_size, function, head.function_size);
	return size;
}
