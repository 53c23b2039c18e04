/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts in memory that are written like files (open_memstream()), and files that are read line by
 * line. Those of libc use the host's memory.
 *
 * A stream begins with libc's struct, because putc_unlocked() is inline code that writes to it. It
 * has no lock: one thread uses it. Streams of libc are only written to, and only standard error: a
 * build with assertions prints there before it aborts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system/call.h"

#if !defined(__GLIBC__)
/* musl's begins with its flags, too. All functions for it are ours. */
struct _IO_FILE {
	int _flags, _fileno;
	char *_IO_write_base, *_IO_write_ptr, *_IO_write_end;
};
#endif

#define MAGIC 0x7170726f /* where libc has its own number and flags */

struct stream {
	FILE file;
	bool failed;
	/* Of memory: where the caller gets it. The text is from _IO_write_base to _IO_write_ptr,
	 * and has space for a 0. */
	char **text;
	size_t *size;
	/* Of a file. */
	size_t at, end;
	char bytes[4096];
};

static bool is_ours(FILE *file)
{
	return file->_flags == MAGIC;
}

static struct stream *make(void)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (stream) {
		stream->file._flags = MAGIC;
		stream->file._fileno = -1;
	}
	return stream;
}

/* --- memory ---------------------------------------------------------------------------------------- */

static bool grow(struct stream *stream, size_t more)
{
	FILE *file = &stream->file;
	size_t used = (size_t)(file->_IO_write_ptr - file->_IO_write_base);
	size_t room = (size_t)(file->_IO_write_end - file->_IO_write_base);
	char *text;

	if (more <= room - used)
		return true;
	room = room * 2 < used + more ? used + more : room * 2;
	text = realloc(file->_IO_write_base, room + 1);
	if (!text) {
		stream->failed = true;
		return false;
	}
	file->_IO_write_base = text;
	file->_IO_write_ptr = text + used;
	file->_IO_write_end = text + room;
	return true;
}

FILE *open_memstream(char **text, size_t *size)
{
	struct stream *stream = make();

	if (!stream)
		return NULL;
	stream->text = text;
	stream->size = size;
	if (!grow(stream, 120)) {
		free(stream);
		return NULL;
	}
	*text = NULL;
	*size = 0;
	return &stream->file;
}

static size_t append(FILE *file, const char *bytes, size_t size)
{
	struct stream *stream = (struct stream *)file;

	if (!is_ours(file))
		return (size_t)CALL_KERNEL(SYS_write, STDERR_FILENO, bytes, size);
	if (!grow(stream, size))
		return 0;
	memcpy(file->_IO_write_ptr, bytes, size);
	file->_IO_write_ptr += size;
	return size;
}

size_t fwrite(const void *bytes, size_t size, size_t count, FILE *file)
{
	return size && append(file, bytes, size * count) == size * count ? count : 0;
}

#undef fwrite_unlocked
size_t fwrite_unlocked(const void *bytes, size_t size, size_t count, FILE *file)
{
	return fwrite(bytes, size, count, file);
}

int fputs(const char *text, FILE *file)
{
	const size_t size = strlen(text);

	return append(file, text, size) == size ? 1 : EOF;
}

int fputc(int byte, FILE *file)
{
	const char one = (char)byte;

	return append(file, &one, 1) == 1 ? (unsigned char)one : EOF;
}

/* A compiler that does not optimize calls this, others the next one. */
int putc_unlocked(int byte, FILE *file)
{
	return fputc(byte, file);
}

#if defined(__GLIBC__)
int __overflow(FILE *file, int byte)
{
	return fputc(byte, file);
}
#endif

int vfprintf(FILE *file, const char *format, va_list arguments)
{
	struct stream *stream = (struct stream *)file;
	char line[1024];
	va_list again;
	size_t room;
	int size;

	if (!is_ours(file)) {
		size = vsnprintf(line, sizeof(line), format, arguments);
		if (size > 0)
			append(file, line, (size_t)size < sizeof(line) ? (size_t)size : sizeof(line) - 1);
		return size;
	}
	va_copy(again, arguments);
	room = (size_t)(file->_IO_write_end - file->_IO_write_ptr);
	size = vsnprintf(file->_IO_write_ptr, room + 1, format, arguments);
	if (size > 0 && (size_t)size > room) {
		if (grow(stream, (size_t)size))
			vsnprintf(file->_IO_write_ptr, (size_t)size + 1, format, again);
		else
			size = -1;
	}
	va_end(again);
	if (size > 0)
		file->_IO_write_ptr += size;
	return size;
}

int fprintf(FILE *file, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vfprintf(file, format, arguments);
	va_end(arguments);
	return size;
}

/* --- files ----------------------------------------------------------------------------------------- */

FILE *fopen(const char *path, const char *how)
{
	struct stream *stream;
	int fd;

	if (*how != 'r') {
		errno = EINVAL;
		return NULL;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	stream = make();
	if (!stream) {
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	stream->file._fileno = fd;
	return &stream->file;
}

/* False: there are no more. */
static bool fill(struct stream *stream)
{
	ssize_t size;

	if (stream->at < stream->end)
		return true;
	size = read(stream->file._fileno, stream->bytes, sizeof(stream->bytes));
	if (size < 0)
		stream->failed = true;
	stream->at = 0;
	stream->end = size > 0 ? (size_t)size : 0;
	return size > 0;
}

ssize_t getdelim(char **line, size_t *room, int delimiter, FILE *file)
{
	struct stream *stream = (struct stream *)file;
	size_t size = 0;
	bool is_whole = false;

	while (!is_whole && fill(stream)) {
		const char *from = stream->bytes + stream->at;
		const char *end = memchr(from, delimiter, stream->end - stream->at);
		size_t part = end ? (size_t)(end - from) + 1 : stream->end - stream->at;

		if (!*line || size + part + 1 > *room) {
			size_t wanted = 2 * (size + part) + 64;
			char *text = realloc(*line, wanted);

			if (!text)
				return -1;
			*line = text;
			*room = wanted;
		}
		memcpy(*line + size, from, part);
		size += part;
		stream->at += part;
		is_whole = end != NULL;
	}
	if (!size)
		return -1;
	(*line)[size] = '\0';
	return (ssize_t)size;
}

#if defined(__GLIBC__)
ssize_t __getdelim(char **line, size_t *room, int delimiter, FILE *file)
{
	return getdelim(line, room, delimiter, file);
}
#endif

ssize_t getline(char **line, size_t *room, FILE *file)
{
	return getdelim(line, room, '\n', file);
}

int ferror(FILE *file)
{
	return is_ours(file) && ((struct stream *)file)->failed;
}

int fclose(FILE *file)
{
	struct stream *stream = (struct stream *)file;
	bool failed = stream->failed;

	if (stream->text) {
		*file->_IO_write_ptr = '\0';
		*stream->text = file->_IO_write_base;
		*stream->size = (size_t)(file->_IO_write_ptr - file->_IO_write_base);
	} else
		close(file->_fileno);
	free(stream);
	return failed ? EOF : 0;
}
