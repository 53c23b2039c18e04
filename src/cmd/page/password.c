/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/page/password.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "cmd/ui/complain.h"

#define USER "queryprof"
#define SHORTEST 12
#define LONGEST 200

/* The first line of the file. False after a complaint. */
static bool read_password(const char *path, char password[LONGEST + 2])
{
	struct stat status;
	const int fd = regular_file_open(path, &status);
	const ssize_t size = fd < 0 ? -1 : read(fd, password, LONGEST + 1);
	size_t length;

	if (size < 0)
		complain("live: --password-file %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (size < 0)
		return false;
	if (status.st_mode & 077 || (status.st_uid != geteuid() && status.st_uid != 0)) {
		complain("live: --password-file %s: its mode is %03o; expected a file that only its owner "
		         "can read: chmod 600",
		         path, (unsigned)status.st_mode & 0777);
		return false;
	}
	password[size] = 0;
	length = strcspn(password, "\r\n");
	password[length] = 0;
	if (length >= SHORTEST && length <= LONGEST)
		return true;
	complain("live: --password-file %s: its first line has %zu%s bytes; expected %d to %d", path, length,
	         length > LONGEST ? " or more" : "", SHORTEST, LONGEST);
	return false;
}

/* RFC 4648. */
static void write_base64(char *to, const unsigned char *text, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		const unsigned word = (unsigned)text[i] << 16 | (i + 1 < size ? text[i + 1] : 0u) << 8 |
		                      (i + 2 < size ? text[i + 2] : 0u);

		*to++ = digits[word >> 18];
		*to++ = digits[word >> 12 & 63];
		*to++ = i + 1 < size ? digits[word >> 6 & 63] : '=';
		*to++ = i + 2 < size ? digits[word & 63] : '=';
	}
	*to = 0;
}

char *password_header(const char *path)
{
	char password[LONGEST + 2], both[sizeof(USER) + sizeof(password)], base64[2 * sizeof(both)];
	char *header = NULL;

	if (!read_password(path, password))
		return NULL;
	snprintf(both, sizeof(both), "%s:%s", USER, password);
	write_base64(base64, (const unsigned char *)both, strlen(both));
	if (asprintf(&header, "Basic %s", base64) < 0) {
		complain("out of memory");
		return NULL;
	}
	return header;
}

bool password_matches(const char *expected, const char *given)
{
	const size_t size = strlen(expected);
	unsigned char differs = 0;

	if (!given || strlen(given) != size)
		return false;
	for (size_t i = 0; i < size; i++)
		differs |= (unsigned char)(expected[i] ^ given[i]);
	return !differs;
}
