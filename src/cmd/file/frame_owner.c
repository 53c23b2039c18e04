/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame is recognized by its name if the code has no module, like that of a just-in-time compiler, and by
 * its module if an interpreter or a driver is a separate file. Other frames count as the program's: a
 * superfluous frame costs a line, but a missing one may be the one that the reader looks for.
 */
#include "cmd/file/frame_owner.h"

#include <sqlite3.h>
#include <stddef.h>

static const char *const modules[] = {
	"libqueryprof*", "libsqlite3*",   "libsqlcipher*", "_sqlite3*.so", "sqlite3*.so", "pdo_sqlite*",
	"SQLite.so",     "libtclsqlite*", "*.node",        "ld-linux*",    "libc.so*",    "libc-*.so",
	"libm.so*",      "libcrypto.so*", "libpthread*",   "libstdc++*",   "libgcc_s*",   "libuv*",
	"python[23]*",   "libpython*",    "php*",          "libphp*",      "ruby*",       "libruby*",
	"perl*",         "libperl*",      "tclsh*",        "libtcl*",      "sqlite3",     "node",
	"bun",           "deno",          "nodejs",        "libnode*",     "[[]vdso]",
};

/* Patterns of functions. */
static const char *const functions[] = {
	"sqlite3*",
	"_start",
	"__libc_*",
	"__start_context",
	"clone*",
	"start_thread",
	"_Py*",
	"Py_*",
	"pysqlite_*",
	"runtime.*",
	"runtime/*",
	"syscall.*",
	"database/sql.*",
	"testing.*",
	"_cgo*",
	"crosscall*",
	"x_cgo_*",
	"*mattn/go-sqlite3*",
	"modernc.org/*",
	"*ncruces/go-sqlite3*",
	"zombiezen.com/go/sqlite*",
	"*libsqlite3_sys*",
	"rusqlite::*",
	"<rusqlite::*",
	"sqlx*::*",
	"<sqlx*::*",
	"diesel::*",
	"<diesel::*",
	"tokio::*",
	"<tokio::*",
	"std::*",
	"<std::*",
	"core::*",
	"<core::*",
	"alloc::*",
	"<alloc::*",
	"__rust_*",
	"rust_*",
	"__gnu_cxx::*",
	"v8::*",
	"node::*",
	"Builtin:*",
	"BytecodeHandler:*",
	"Stub:*",
	"RegExp:*",
	"*node:internal/*",
	"*node_modules/*",
	"py::*:<frozen *",
	"py::*/site-packages/*",
	"py::*/lib/python[23]*",
};

/* Patterns of sources: libraries of languages, and third-party packages. */
static const char *const files[] = {
	"*/node_modules/*", "node:*",          "*/site-packages/*", "*/.cargo/registry/*", "/rustc/*",
	"*/go/pkg/mod/*",   "*/go/src/*",      "*/sqlite3.c",       "sqlite3.c",           "*/go-sqlite3/*",
	"*/gocode/src/*",   "*/library/std/*", "*/library/core/*",
};

static bool is_in(const char *text, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (sqlite3_strglob(patterns[i], text) == 0)
			return true;
	return false;
}
#define IS_IN(text, patterns) is_in(text, patterns, sizeof(patterns) / sizeof(*(patterns)))

bool frame_is_of_program(const char *function, const char *module, const char *file)
{
	return !IS_IN(module, modules) && !IS_IN(function, functions) && !IS_IN(file, files);
}

bool module_is_interpreter(const char *module)
{
	static const char *const interpreters[] = { "python[23]*", "libpython*", "php*",    "libphp*",
		                                    "perl*",       "libperl*",   "ruby*",   "libruby*",
		                                    "node",        "nodejs",     "libnode*" };

	return IS_IN(module, interpreters);
}
