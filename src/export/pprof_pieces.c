/* SPDX-License-Identifier: Apache-2.0 */
#include "export/pprof_pieces.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "export/protobuf.h"

/* Level 1, because samples of a stack are adjacent, and higher levels save little more. zlib writes to a
 * descriptor, and closes it. */
bool pprof_pieces_open(struct pprof_pieces *pieces, FILE *out)
{
	int fd = fflush(out) == 0 ? dup(fileno(out)) : -1;

	pieces->file = fd >= 0 ? gzdopen(fd, "wb1") : NULL;
	if (!pieces->file) {
		pieces->failed = true;
		if (fd >= 0)
			close(fd);
		return false;
	}
	pprof_pieces_string(pieces, ""); /* the first */
	return !pieces->failed;
}

uint8_t *pprof_pieces_room(struct pprof_pieces *pieces, size_t size)
{
	if (!pieces->failed && vector_reserve(&pieces->piece, size))
		return pieces->piece.items;
	pieces->failed = true;
	return NULL;
}

/* gzwrite() takes an unsigned size; 0 bytes: an error. */
void pprof_pieces_write(struct pprof_pieces *pieces, const uint8_t *end)
{
	const size_t size = (size_t)(end - pieces->piece.items);

	if (size && (size > INT32_MAX || gzwrite(pieces->file, pieces->piece.items, (unsigned)size) <= 0))
		pieces->failed = true;
}

void pprof_pieces_message(struct pprof_pieces *pieces, const Pprof__Profile *message)
{
	uint8_t *room = pprof_pieces_room(pieces, pprof__profile__get_packed_size(message));

	if (room)
		pprof_pieces_write(pieces, room + pprof__profile__pack(message, room));
}

#define STRING_TAG PROTOBUF_BYTES(6) /* Profile.string_table */

int64_t pprof_pieces_new_string(struct pprof_pieces *pieces, const char *text)
{
	const size_t size = strlen(text);
	uint8_t *room = pprof_pieces_room(pieces, 1 + PROTOBUF_NUMBER_MAX + size);

	if (!room)
		return 0;
	pprof_pieces_write(pieces, mempcpy(protobuf_put_bytes(room, STRING_TAG, size), text, size));
	return pieces->string_count++;
}

int64_t pprof_pieces_string(struct pprof_pieces *pieces, const char *text)
{
	int64_t *number = index_item(&pieces->string_index, hash_bytes(text, strlen(text)), &pieces->strings);

	if (!number) {
		pieces->failed = true;
		return 0;
	}
	if (!*number)
		*number = pprof_pieces_new_string(pieces, text) + 1;
	return *number - 1;
}

bool pprof_pieces_close(struct pprof_pieces *pieces)
{
	const int error = errno;

	if (pieces->file && gzclose(pieces->file) != Z_OK)
		pieces->failed = true;
	else
		errno = error;
	index_free(&pieces->string_index);
	vector_free(&pieces->strings);
	vector_free(&pieces->piece);
	return !pieces->failed;
}
