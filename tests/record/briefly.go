// SPDX-License-Identifier: Apache-2.0

// A Go program with one query of some 30 ms. Go leaves by the bare system call.
package main

// #cgo LDFLAGS: -lsqlite3
// #include <sqlite3.h>
import "C"

func main() {
	var db *C.sqlite3
	C.sqlite3_open(C.CString(":memory:"), &db)
	C.sqlite3_exec(db, C.CString("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 150000)"+
		" SELECT sum(x) AS q_0_0_0 FROM c"), nil, nil, nil)
}
