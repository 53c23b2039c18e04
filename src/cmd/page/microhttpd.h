/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd, which is opened at run time: only `queryprof live` needs it.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#define MICROHTTPD_FUNCTIONS(F)                                                                              \
	F(MHD_start_daemon)                                                                                  \
	F(MHD_stop_daemon)                                                                                   \
	F(MHD_get_daemon_info)                                                                               \
	F(MHD_get_timeout)                                                                                   \
	F(MHD_run)                                                                                           \
	F(MHD_lookup_connection_value)                                                                       \
	F(MHD_queue_response)                                                                                \
	F(MHD_suspend_connection)                                                                            \
	F(MHD_resume_connection)                                                                             \
	F(MHD_create_response_from_buffer)                                                                   \
	F(MHD_create_response_from_callback)                                                                 \
	F(MHD_add_response_header)                                                                           \
	F(MHD_destroy_response)

/* The functions, after microhttpd_open(). */
#define MICROHTTPD_DECLARE(name) __typeof__(name) *name;
extern struct microhttpd {
	MICROHTTPD_FUNCTIONS(MICROHTTPD_DECLARE)
} microhttpd;

/* False after a complaint: the library is not installed. */
bool microhttpd_open(void);
