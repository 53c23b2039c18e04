/*
 * The descriptors that the store holds, in a process whose host may close them.
 */
#ifndef QUERYPROF_STORE_FILE_DESCRIPTORS_H
#define QUERYPROF_STORE_FILE_DESCRIPTORS_H

#include <sqlite3.h>
#include <stdbool.h>

/* Gives the calling thread, and those that it makes from now on, a descriptor table of
 * their own, empty, where the kernel lets it. */
void descriptors_separate(void);

/* Whether the newest call did. */
bool descriptors_are_own(void);

/* Takes over an open descriptor: it gets a number that is not one of the lowest, where
 * the limit allows, and is remembered. The number; -1 and errno: it is closed. */
int descriptors_keep(int fd);

/* Whether `fd` still is what it was when it was kept. */
bool descriptors_has(int fd);

/* Whether all that are kept are. */
bool descriptors_intact(void);

/* Forgets it; and closes it, but for one that is the host's by now. -1: nothing. */
void descriptors_close(int fd);

/* From now on what this SQLite opens is kept, and what is not intact is neither read
 * nor written nor closed by it. `lock` stands for its fcntl(). */
void descriptors_guard(sqlite3_vfs *vfs, int (*lock)(int fd, int command, void *argument));

#endif
