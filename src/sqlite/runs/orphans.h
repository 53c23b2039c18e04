/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the host that a longjmp left, whose frames have not been overwritten.
 *
 * Code further down on the stack, with the words of such a frame in a gap of its own frame, seems to
 * be inside the call (handler/running.h). Only the stack decides: unwinding that code passes the
 * frame or does not meet it.
 */
#pragma once

#include "sqlite/library/calling.h"

/* Marks the calls of the table, the calling thread's, that code in `frame` seems to be inside of
 * and is not. */
void orphans_mark(struct calling *calling, const void *frame);
