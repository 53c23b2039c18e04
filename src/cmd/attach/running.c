/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attach/running.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* --- whether it is a statement ------------------------------------------------------------------------ */

/* SQLite's structures, unchanged since 3.9. A connection begins with its VFS and its list of statements,
 * and a statement with its connection and its neighbours in that list. */
enum { DB_VFS = 0, DB_STATEMENTS = 8, STATEMENT_PREVIOUS = 8, STATEMENT_NEXT = 16, VFS_NAME = 24 };

#define FIRST_PAGE 4096
#define VFS_NAME_MAX 64
#define SIZE_MAX_OF_FILES (1 << 20)

static bool read_at(pid_t process, uint64_t address, void *to, size_t size)
{
	return address >= FIRST_PAGE &&
	       object_read(&(struct object_memory){ .process = process }, address, to, size);
}

/* 0: it cannot be read. */
static uint64_t word_at(pid_t process, uint64_t address)
{
	uint64_t word;

	return read_at(process, address, &word, sizeof(word)) ? word : 0;
}

static bool is_vfs(pid_t process, uint64_t address)
{
	int32_t version_and_sizes[3]; /* iVersion, szOsFile, mxPathname */
	char name[VFS_NAME_MAX];
	size_t size = 0;

	if (!read_at(process, address, version_and_sizes, sizeof(version_and_sizes)) ||
	    version_and_sizes[0] < 1 || version_and_sizes[0] > 3 || version_and_sizes[1] <= 0 ||
	    version_and_sizes[1] > SIZE_MAX_OF_FILES || version_and_sizes[2] <= 0 ||
	    version_and_sizes[2] > SIZE_MAX_OF_FILES)
		return false;
	address = word_at(process, address + VFS_NAME);
	while (size < sizeof(name) && read_at(process, address + size, name + size, 1) && name[size] > ' ' &&
	       name[size] < 0x7f)
		size++;
	return size && size < sizeof(name) && name[size] == '\0';
}

/* Its predecessor in the list, or the list's head, points to it. Older versions of SQLite store the
 * predecessor's address there, newer ones the address of the pointer to the statement. */
static bool is_member(pid_t process, uint64_t statement, uint64_t connection)
{
	const uint64_t previous = word_at(process, statement + STATEMENT_PREVIOUS),
		       head = connection + DB_STATEMENTS;

	if (!previous || previous == head)
		return word_at(process, head) == statement;
	if (word_at(process, previous) == statement)
		return word_at(process, previous - STATEMENT_NEXT) == connection;
	return word_at(process, previous) == connection &&
	       word_at(process, previous + STATEMENT_NEXT) == statement;
}

static bool is_statement(pid_t process, uint64_t address, const struct sqlite_code *code)
{
	uint64_t connection;

	if (address < FIRST_PAGE || address % 8 || code->connection < 0)
		return false;
	connection = word_at(process, address + (uint64_t)code->connection);
	return connection >= FIRST_PAGE && connection % 8 == 0 && connection != address &&
	       is_vfs(process, word_at(process, connection + DB_VFS)) &&
	       is_member(process, address, connection);
}

/* --- candidates ----------------------------------------------------------------------------------- */

static const unsigned kept_registers[RUNNING_REGISTERS] = { 3, 6, 12, 13, 14, 15 }; /* DWARF's numbers */

void running_frame_read(struct running_frame *frame, const struct walk *walk, Dwfl_Frame *from)
{
	*frame = (struct running_frame){ .stack = 0 };
	for (size_t i = 0; i < RUNNING_REGISTERS; i++)
		if (!walk_register(walk, from, kept_registers[i], &frame->registers[i]))
			frame->registers[i] = 0;
	if (!walk_register(walk, from, WALK_STACK_POINTER, &frame->stack))
		frame->stack = 0;
}

static uint64_t copied_word(const struct walk_start *start, uint64_t address)
{
	const uint64_t past = address - start->at;
	uint64_t word = 0;

	if (past < start->size && start->size - past >= sizeof(word))
		memcpy(&word, start->copy + past, sizeof(word));
	return word;
}

static uint64_t register_of(const struct running_frame *frame, unsigned number)
{
	for (size_t i = 0; i < RUNNING_REGISTERS; i++)
		if (kept_registers[i] == number)
			return frame->registers[i];
	return number == WALK_STACK_POINTER ? frame->stack : 0;
}

/* The argument, from where the library's code keeps it; 0: it cannot be read. */
static uint64_t kept_word(const struct running_frame *frame, const struct kept_argument *kept,
                          const struct walk_start *start)
{
	const uint64_t base = kept->kind == KEPT_UNKNOWN ? 0 : register_of(frame, kept->number);

	if (!base || kept->kind == KEPT_IN_REGISTER)
		return base;
	return copied_word(start, base + (uint64_t)(int64_t)kept->offset);
}

/* Sets *found if the word is a statement. False: another statement was found before. */
static bool find_one(uint64_t word, const struct sqlite_code *code, pid_t process, uint64_t *found)
{
	if (word == *found || !is_statement(process, word, code))
		return true;
	if (*found)
		return false;
	*found = word;
	return true;
}

uint64_t running_statement(const struct running_frame *frame, const struct sqlite_code *code,
                           const struct walk_start *start, pid_t process)
{
	const uint64_t kept = kept_word(frame, &code->kept, start);
	uint64_t found = 0;

	if (is_statement(process, kept, code))
		return kept;
	/* Otherwise the only statement in the frame. Registers and stack may also have statements of its
	 * callers. */
	for (size_t i = 0; i < RUNNING_REGISTERS; i++)
		if (!find_one(frame->registers[i], code, process, &found))
			return 0;
	for (uint64_t at = frame->stack; at + sizeof(at) <= frame->stack_end; at += sizeof(at))
		if (!find_one(copied_word(start, at), code, process, &found))
			return 0;
	return found;
}

/* --- its text ------------------------------------------------------------------------------------- */

#define PIECE 4096

size_t running_text(uint64_t statement, const struct sqlite_code *code, pid_t process, char *text,
                    size_t room, bool *is_cut)
{
	uint64_t at = code->text < 0 ? 0 : word_at(process, statement + (uint64_t)code->text);
	size_t size = 0;

	*is_cut = false;
	while (at && size + 1 < room) {
		/* Not beyond this page, which may be the last. */
		size_t piece = PIECE - (at + size) % PIECE, length;

		piece = piece < room - 1 - size ? piece : room - 1 - size;
		if (!read_at(process, at + size, text + size, piece))
			break;
		length = strnlen(text + size, piece);
		size += length;
		if (length < piece) {
			text[size] = '\0';
			return size;
		}
	}
	/* The text has no end that can be read, or its end is too far away. */
	*is_cut = at && size + 1 >= room;
	size = *is_cut ? size : 0;
	text[size] = '\0';
	return size;
}
