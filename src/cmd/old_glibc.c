/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the command needs and that a glibc before 2.34 lacks (cmake/glibc/): stat() and related
 * ones, also for the linked archives, and a start that runs the constructors.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "as the kernel's");

#define HERE __attribute__((visibility("hidden")))
#define ALSO(of, parameters) parameters __attribute__((alias(#of), visibility("hidden")))

HERE int stat(const char *restrict path, struct stat *restrict found)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, 0);
}
int ALSO(stat, stat64(const char *restrict path, struct stat64 *restrict found));

HERE int lstat(const char *restrict path, struct stat *restrict found)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
int ALSO(lstat, lstat64(const char *restrict path, struct stat64 *restrict found));

HERE int fstat(int fd, struct stat *found)
{
	return (int)syscall(SYS_fstat, fd, found);
}
int ALSO(fstat, fstat64(int fd, struct stat64 *found));

typedef int (*program_main)(int argc, char **argv, char **environment);
typedef void (*constructor)(int argc, char **argv, char **environment);

extern const constructor __init_array_start[] __attribute__((visibility("hidden")));
extern const constructor __init_array_end[] __attribute__((visibility("hidden")));

static int construct(int argc, char **argv, char **environment)
{
	for (const constructor *each = __init_array_start; each < __init_array_end; each++)
		(*each)(argc, argv, environment);
	return 0;
}

extern int start_main(program_main run, int argc, char **argv, program_main init, void (*fini)(void),
                      void (*end)(void), void *stack);
__asm__(".symver start_main, __libc_start_main@GLIBC_" GLIBC_FIRST);

int __libc_start_main(program_main run, int argc, char **argv, program_main init, void (*fini)(void),
                      void (*end)(void), void *stack);

/* A crt1.o of glibc 2.34 or newer passes no `init`, and expects libc to run the constructors. */
HERE int __libc_start_main(program_main run, int argc, char **argv, program_main init, void (*fini)(void),
                           void (*end)(void), void *stack)
{
	return start_main(run, argc, argv, init ? init : construct, fini, end, stack);
}
