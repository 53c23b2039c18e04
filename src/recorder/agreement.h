/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agreement of `queryprof record` and the library that it has programs load: the settings in the
 * environment, and the ring that the library fills and the command reads. The library contains this text, so
 * that the command finds it there without running any of it.
 */
#ifndef QUERYPROF_RECORDER_AGREEMENT_H
#define QUERYPROF_RECORDER_AGREEMENT_H

#define RECORD_AGREEMENT "queryprof record: version " QUERYPROF_VERSION ", wire " WIRE_VERSION

#endif
