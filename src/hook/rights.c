/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/rights.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

static void (*before_change)(void);

void rights_follow(void (*before)(void))
{
	/* Relaxed: it is a function of the library. */
	__atomic_store_n(&before_change, before, __ATOMIC_RELAXED);
}

static void notify(void)
{
	void (*before)(void) = __atomic_load_n(&before_change, __ATOMIC_RELAXED);

	if (before && geteuid() == 0)
		before();
}

#define FOLLOW(name, parameters, arguments)                                                                  \
	static int(*real_##name) parameters;                                                                 \
	static int queryprof_##name parameters                                                               \
	{                                                                                                    \
		notify();                                                                                    \
		return real_##name arguments;                                                                \
	}

FOLLOW(setuid, (uid_t user), (user))
FOLLOW(seteuid, (uid_t user), (user))
FOLLOW(setreuid, (uid_t real, uid_t effective), (real, effective))
FOLLOW(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
FOLLOW(setgid, (gid_t group), (group))
FOLLOW(setegid, (gid_t group), (group))
FOLLOW(setregid, (gid_t real, gid_t effective), (real, effective))
FOLLOW(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
FOLLOW(setgroups, (size_t count, const gid_t *groups), (count, groups))
FOLLOW(initgroups, (const char *user, gid_t group), (user, group))
FOLLOW(chroot, (const char *path), (path))

int rights_hooks(struct import_hook hooks[RIGHTS_HOOKS_MAX])
{
	int count = 0;

#define ADD(name)                                                                                            \
	*(void **)&real_##name = dlsym(RTLD_DEFAULT, #name);                                                 \
	hooks[count++] = (struct import_hook){ .symbol = #name,                                              \
		                               .real = (void *)real_##name,                                  \
		                               .replacement = (void *)queryprof_##name }
	ADD(setuid);
	ADD(seteuid);
	ADD(setreuid);
	ADD(setresuid);
	ADD(setgid);
	ADD(setegid);
	ADD(setregid);
	ADD(setresgid);
	ADD(setgroups);
	ADD(initgroups);
	ADD(chroot);
#undef ADD
	return count;
}
