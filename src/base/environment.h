/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queryprof's environment variables. A process that `queryprof attach` enters was started without them, and
 * its environment must not change. So the command passes them in memory.
 */
#pragma once

/* The variable's value, NULL: it is not set. In a set-user-id program no variable is set. */
const char *environment_value(const char *name);

/* From now on only these variables are set: "NAME=VALUE" one after another, each with its terminator, and an
 * empty one at the end. The memory stays. */
void environment_replace(const char *variables);
