/*
 * The SQL functions: addressToSymbol, addressToLine, demangle, traceToText,
 * set_setting, and what later issues add.
 */
#ifndef QUERYPROF_SQLITE_FUNCTIONS_H
#define QUERYPROF_SQLITE_FUNCTIONS_H

#include "session.h"

int functions_register(struct session *session, char **error);

#endif
