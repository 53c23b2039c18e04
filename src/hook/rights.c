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

#define RIGHTS_CALLS(X)                                                                                      \
	X(setuid, (uid_t user), (user))                                                                      \
	X(seteuid, (uid_t user), (user))                                                                     \
	X(setreuid, (uid_t real, uid_t effective), (real, effective))                                        \
	X(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))                   \
	X(setgid, (gid_t group), (group))                                                                    \
	X(setegid, (gid_t group), (group))                                                                   \
	X(setregid, (gid_t real, gid_t effective), (real, effective))                                        \
	X(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))                   \
	X(setgroups, (size_t count, const gid_t *groups), (count, groups))                                   \
	X(initgroups, (const char *user, gid_t group), (user, group))                                        \
	X(chroot, (const char *path), (path))

#define FOLLOW(name, parameters, arguments)                                                                  \
	static int(*real_##name) parameters;                                                                 \
	static int queryprof_##name parameters                                                               \
	{                                                                                                    \
		notify();                                                                                    \
		return real_##name arguments;                                                                \
	}
RIGHTS_CALLS(FOLLOW)

int rights_hooks(struct import_hook hooks[RIGHTS_HOOKS_MAX])
{
	int count = 0;

#define HOOK(name, parameters, arguments)                                                                    \
	*(void **)&real_##name = dlsym(RTLD_DEFAULT, #name);                                                 \
	hooks[count++] = (struct import_hook){ .symbol = #name,                                              \
		                               .real = (void *)real_##name,                                  \
		                               .replacement = (void *)queryprof_##name };
	RIGHTS_CALLS(HOOK)
	return count;
}
