/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/version.h"

#include "queryprof.h"

const char wire_version[16] = WIRE_VERSION;
const char wire_agreement[] = "queryprof record: version " QUERYPROF_VERSION ", wire " WIRE_VERSION;
const size_t wire_agreement_size = sizeof(wire_agreement);
