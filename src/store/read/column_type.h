/* SPDX-License-Identifier: Apache-2.0 */
/* The types that a column of a row can have. */
#pragma once

enum store_type { STORE_NULL, STORE_INT64, STORE_DOUBLE, STORE_TEXT, STORE_BLOB };
