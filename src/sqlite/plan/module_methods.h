/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of virtual tables' modules that SQLite calls while it plans a statement (module_calls.h),
 * begins a loop or asks for a row (module_counts.h), replaced in the modules of the host and of extensions.
 *
 * They are replaced where the module has them, because the host and SQLite compare pointers to modules. A
 * module that is not data of a loaded object stays as it is: its memory may be freed. The replacements stay
 * valid for ever, as the host may copy them.
 */
#pragma once

#include "sqlite/opcode/locations.h"
#include "sqlite/plan/module_calls.h"
#include "sqlite/session/session.h"

/* Whether the name is that of one of SQLite's own modules; a program that has SQLite inside, or an extension,
 * has its own modules in the same image. */
bool module_is_own_name(const char *name);

/* Whether all calls that SQLite makes to the module while it plans reach the replacements. */
bool module_is_followed(const sqlite3_module *functions);

/* Between the two no module gets its own methods back. False: one is getting them back now. */
bool module_methods_hold(void);
void module_methods_release(void);

/* All modules get their own methods back, now or when the last of these plans was read. */
void module_methods_restore(void);

/* Atomic: when methods were replaced last, or put back, by the threads' clock; UINT64_MAX: now. */
extern uint64_t module_methods_changed_ns;
extern uint32_t module_methods_version;  /* atomic: changes when all modules are to be looked at again */
extern bool module_methods_are_followed; /* relaxed atomic: some module was ever followed */

/* Replaces the methods of modules that were registered since the newest look, if no other thread does that.
 */
void module_methods_look(struct session *session);

/* A statement uses a module that is not followed: it may have replaced one of the same name. */
void module_methods_look_again(void);

/* The host begins to prepare a statement; the session is private to the thread, or the thread has its mutex.
 */
static inline void module_methods_prepare(struct session *session, struct calling *calling)
{
	const struct opcode_library *library = opcode_library(session->library);
	struct module_list list;

	if (!library || !library->modules)
		return;
	list = module_list_of(session->db, library->modules);
	if (__builtin_expect(list.first != session->modules.first || list.count != session->modules.count ||
	                             session->modules.version !=
	                                     __atomic_load_n(&module_methods_version, __ATOMIC_RELAXED),
	                     0))
		module_methods_look(session);
	if (__atomic_load_n(&module_methods_are_followed, __ATOMIC_RELAXED))
		module_record_begin(calling, session->library);
}
