/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite's mutexes by the objects that they guard, for the waits of queries.
 */
#pragma once

#include "sqlite/session/session.h"

/* From now on the mutexes of the session's connection and of its library are recognised. Under the
 * connection's mutex. */
void mutexes_follow(struct session *session);
