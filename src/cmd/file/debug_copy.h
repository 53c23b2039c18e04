/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of files with debug information, whose sections are decompressed. To name one line, libdw
 * decompresses all of them, which takes more time than everything else. It maps a copy instead and reads what
 * it needs.
 *
 * A copy that is truncated while it is mapped would raise SIGBUS, so the folder belongs to
 * the user alone, and queryprof only adds and removes whole files.
 */
#pragma once

/* From now on, look-ups of lines find copies in the folder, and make them; NULL: no longer. The text is the
 * caller's. */
void debug_copies_use(const char *folder);
