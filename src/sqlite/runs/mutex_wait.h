/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's waits for a connection's mutex outside runs. Hosts enter that mutex themselves, or call
 * functions of SQLite that enter it and have no run (to bind a value). Each wait is a run of its own.
 */
#pragma once

/* The hook of pthread_mutex_lock() tells of such waits from now on. */
void mutex_wait_follow(void);
