/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/sqlite_code.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/x86_64.h"
#include "cmd/file/file_map.h"
#include "symbol/elf_image.h"

/* --- reading code --------------------------------------------------------------------------------- */

#define CODE_BYTES 256 /* bytes of a function's beginning */

/* The processor's numbers of registers. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

#define PLACES_MAX 4
#define OFFSET_MAX 4096

/* The registers and stack slots that hold the argument after the instructions read so far. */
struct tracked {
	unsigned registers; /* a bit for each */
	struct kept_argument slots[PLACES_MAX];
	size_t slot_count;
};

/* An instruction that moves 64 bits between a register and a register or memory without an index. */
struct move {
	bool is_store;  /* the value of `reg` */
	bool is_memory; /* else `base` is the register */
	unsigned reg, base;
	int32_t offset;
};

static bool read_move(const unsigned char *code, const struct x86_instruction *instruction, struct move *move)
{
	const unsigned mode = instruction->operand >> 6, rm = instruction->operand & 7;
	const unsigned char *after = code + instruction->operand_at + 1;

	if (instruction->map != X86_ONE_BYTE || instruction->is_vector || !(instruction->rex & 8) ||
	    (instruction->opcode != 0x89 && instruction->opcode != 0x8b))
		return false;
	*move = (struct move){ .is_store = instruction->opcode == 0x89,
		               .is_memory = mode != 3,
		               .reg = x86_register(instruction),
		               .base = rm | (instruction->rex & 1 ? 8u : 0u) };
	if (mode == 3)
		return true;
	if (rm == RSP) { /* another byte: only a base */
		if (*after++ != 0x24)
			return false;
	} else if (rm == RBP && mode == 0) {
		return false; /* an address relative to the instruction */
	}
	if (mode == 1)
		move->offset = (signed char)*after;
	else if (mode == 2)
		memcpy(&move->offset, after, sizeof(move->offset));
	return true;
}

/* DWARF numbers the first eight registers in another order. */
static unsigned dwarf_number(unsigned number)
{
	static const unsigned char numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5 };

	return number < sizeof(numbers) ? numbers[number] : number;
}

static bool is_slot(const struct move *move)
{
	return move->is_memory && (move->base == RBP || move->base == RSP);
}

static struct kept_argument slot_of(const struct move *move)
{
	return (struct kept_argument){ KEPT_ON_STACK, dwarf_number(move->base), move->offset };
}

static bool has_slot(const struct tracked *tracked, const struct move *move)
{
	const struct kept_argument slot = slot_of(move);

	for (size_t i = 0; i < tracked->slot_count; i++)
		if (tracked->slots[i].number == slot.number && tracked->slots[i].offset == slot.offset)
			return true;
	return false;
}

static void track(struct tracked *tracked, const struct move *move)
{
	const unsigned to = !move->is_store ? move->reg : move->base;
	const bool has = move->is_store     ? tracked->registers >> move->reg & 1
	                 : !move->is_memory ? tracked->registers >> move->base & 1
	                                    : is_slot(move) && has_slot(tracked, move);

	if (!move->is_store || !move->is_memory)
		tracked->registers = (tracked->registers & ~(1u << to)) | (unsigned)has << to;
	else if (has && is_slot(move) && tracked->slot_count < PLACES_MAX)
		tracked->slots[tracked->slot_count++] = slot_of(move);
}

int32_t sqlite_code_loaded_offset(const unsigned char *code, size_t size)
{
	struct tracked tracked = { .registers = 1u << RDI };
	struct x86_instruction instruction;
	struct move move;

	for (size_t at = 0; at < size && x86_decode(code + at, size - at, &instruction);
	     at += instruction.length) {
		if (instruction.opcode == 0xe8 && instruction.map == X86_ONE_BYTE)
			return -1; /* it calls another function */
		if (!read_move(code + at, &instruction, &move))
			continue;
		if (!move.is_store && move.is_memory && !is_slot(&move) && tracked.registers >> move.base & 1)
			return move.reg == RAX && move.offset >= 0 && move.offset < OFFSET_MAX &&
			                       move.offset % 8 == 0
			               ? move.offset
			               : -1;
		track(&tracked, &move);
	}
	return -1;
}

static bool is_kept_by_calls(unsigned number)
{
	return number == RBX || number == RBP || (number >= 12 && number <= 15);
}

struct kept_argument sqlite_code_kept(const unsigned char *code, size_t size)
{
	struct x86_instruction instruction;
	struct move move;

	for (size_t at = 0; at < size && x86_decode(code + at, size - at, &instruction);
	     at += instruction.length) {
		if (instruction.opcode == 0xe8 && instruction.map == X86_ONE_BYTE)
			break; /* the argument is lost after a call */
		if (!read_move(code + at, &instruction, &move))
			continue;
		if (move.is_store && move.reg == RDI && is_slot(&move))
			return slot_of(&move);
		if (!move.is_memory) {
			const unsigned from = move.is_store ? move.reg : move.base,
				       to = move.is_store ? move.base : move.reg;

			if (from == RDI && is_kept_by_calls(to))
				return (struct kept_argument){ KEPT_IN_REGISTER, dwarf_number(to), 0 };
		}
		if (move.is_store ? !move.is_memory && move.base == RDI : move.reg == RDI)
			break; /* another value */
	}
	return (struct kept_argument){ .kind = KEPT_UNKNOWN };
}

/* --- finding the functions --------------------------------------------------------------------------- */

struct function {
	uint64_t start, size;
};

struct functions {
	struct function step, sql, db_handle;
};

static struct function *function_of(struct functions *functions, const char *name)
{
	if (strcmp(name, "sqlite3_step") == 0)
		return &functions->step;
	if (strcmp(name, "sqlite3_sql") == 0)
		return &functions->sql;
	return strcmp(name, "sqlite3_db_handle") == 0 ? &functions->db_handle : NULL;
}

static void note(struct functions *functions, const char *name, uint64_t start, uint64_t size)
{
	struct function *function = function_of(functions, name);

	if (function && size)
		*function = (struct function){ start, size };
}

static void find_dynamic(struct functions *functions, const struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		const Elf64_Sym *symbol = &symbols->symbols[i];

		if (symbol->st_shndx != SHN_UNDEF && symbol->st_name < symbols->strings_size)
			note(functions, symbols->strings + symbol->st_name, symbol->st_value + symbols->bias,
			     symbol->st_size);
	}
}

/* The file as the process sees it. */
static void path_in(const struct target *target, const struct target_object *object, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "/proc/%d/root%s", (int)target->process, object->path);
}

/* The symbol table of the object's file. */
static void find_static(struct functions *functions, const char *path, uint64_t bias)
{
	const Elf64_Shdr *section;
	struct elf_image image;
	Elf_Data *data;

	if (!elf_image_open(&image, path))
		return;
	section = elf_image_section_of_type(&image, SHT_SYMTAB);
	data = section && section->sh_link < image.section_count ? elf_image_data(&image, section) : NULL;
	for (size_t i = 0; data && i < data->d_size / sizeof(Elf64_Sym); i++) {
		const Elf64_Sym *symbol = &((const Elf64_Sym *)data->d_buf)[i];
		const char *name =
			ELF64_ST_TYPE(symbol->st_info) == STT_FUNC
				? image.libdw->elf_strptr(image.elf, section->sh_link, symbol->st_name)
				: NULL;

		if (name)
			note(functions, name, symbol->st_value + bias, symbol->st_size);
	}
	elf_image_close(&image);
}

/* Every SQLite contains this message. */
static bool has_sqlite(const char *path)
{
	static const char message[] = "database disk image is malformed";
	struct stat status;
	void *file = file_map(path, &status);
	const bool found = file && memmem(file, (size_t)status.st_size, message, sizeof(message));

	if (file)
		munmap(file, (size_t)status.st_size);
	return found;
}

static bool read_code(const struct target *target, const struct function *function,
                      unsigned char code[CODE_BYTES], size_t *size)
{
	*size = function->size < CODE_BYTES ? function->size : CODE_BYTES;
	return *size && object_read(&(struct object_memory){ .process = target->process }, function->start,
	                            code, *size);
}

static struct sqlite_code learn(const struct target *target, const struct target_object *object,
                                const struct functions *functions)
{
	struct sqlite_code code = { .object = object,
		                    .step = functions->step.start,
		                    .step_end = functions->step.start + functions->step.size,
		                    .text = -1,
		                    .connection = -1 };
	unsigned char bytes[CODE_BYTES];
	size_t size;

	if (read_code(target, &functions->sql, bytes, &size))
		code.text = sqlite_code_loaded_offset(bytes, size);
	if (read_code(target, &functions->db_handle, bytes, &size))
		code.connection = sqlite_code_loaded_offset(bytes, size);
	if (read_code(target, &functions->step, bytes, &size))
		code.kept = sqlite_code_kept(bytes, size);
	return code;
}

static bool add_object(struct sqlite_codes *codes, const struct target *target,
                       const struct target_object *object)
{
	const struct object_memory memory = { .process = target->process };
	struct functions functions = { .step = { 0 } };
	struct symbols symbols;
	char path[PATH_MAX];
	uint64_t bias;

	/* Another file may be a database, which must not be opened. */
	if (!symbols_find_bias(&memory, object->base, &bias))
		return true;
	if (symbols_read(&symbols, &memory, object->base))
		find_dynamic(&functions, &symbols);
	symbols_free(&symbols);
	path_in(target, object, path);
	if (!functions.step.size && has_sqlite(path)) {
		find_static(&functions, path, bias);
		if (!functions.step.size) {
			codes->nameless++;
			codes->nameless_object = object;
		}
	}
	return !functions.step.size || vector_push(&codes->list, learn(target, object, &functions));
}

bool sqlite_codes_find(struct sqlite_codes *codes, const struct target *target)
{
	bool done = true;

	*codes = (struct sqlite_codes){ .nameless = 0 };
	for (size_t i = 0; done && i < target->objects.count; i++)
		if (target->objects.items[i].kind == OBJECT_OTHER)
			done = add_object(codes, target, &target->objects.items[i]);
	return done;
}

void sqlite_codes_free(struct sqlite_codes *codes)
{
	vector_free(&codes->list);
}

const struct sqlite_code *sqlite_codes_step_at(const struct sqlite_codes *codes, uint64_t address)
{
	for (size_t i = 0; i < codes->list.count; i++)
		if (address - codes->list.items[i].step <
		    codes->list.items[i].step_end - codes->list.items[i].step)
			return &codes->list.items[i];
	return NULL;
}
