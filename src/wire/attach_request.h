/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request of `queryprof attach` to the recorder in a running process, and the response. The command finds
 * both by their names: the function queryprof_attached(struct attach_request *, struct link_map
 * *), and the variable queryprof_attachment.
 */
#pragma once

#include <stdint.h>

/* The recorder's response. */
enum attach_result {
	ATTACH_NOT_ANSWERED,
	ATTACH_DONE,
	ATTACH_BUSY,    /* another thread is starting or stopping it: try again */
	ATTACH_REFUSED, /* for the reason in `sentence` */
};

struct attach_request {
	uint32_t begins; /* 0: the recording ends */
	uint32_t result; /* enum attach_result */
	int32_t ended;   /* only what this command has begun ends; 0: any */
	int32_t command; /* for the attachment */
	uint64_t command_start, region;
	char sentence[240];
	char path[512];         /* of the recorder's file */
	char environment[8192]; /* as environment_replace() takes it */
};

/* What remains in the process between two recordings. */
struct attachment {
	char version[16]; /* wire_version */
	uint32_t is_recorded;
	int32_t command;        /* the process that reads the records, */
	uint64_t command_start; /* and when that one began, as in /proc/PID/stat */
	uint64_t region;        /* memory for the next call, 0: none */
};
