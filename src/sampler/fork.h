/*
 * fork(): what the child keeps of the sampler, and the hooks of the rooms in front of it.
 */
#ifndef QUERYPROF_SAMPLER_FORK_H
#define QUERYPROF_SAMPLER_FORK_H

/* pthread_atfork: the parts in front of the sampler (store, modules) hang in
 * here, so that the order is the same everywhere. Called in reverse order of
 * registration before, in order after; in the child when its ring is empty and its
 * sampler stands again. Any may be NULL. At most 8, before the first fork. */
struct fork_hooks {
	void (*before)(void);
	void (*after_in_parent)(void);
	void (*after_in_child)(void);
};
void sampler_add_fork_hooks(const struct fork_hooks *hooks);

/* Installs the hooks, once. 0 or an errno value. */
int fork_init(void);

#endif
