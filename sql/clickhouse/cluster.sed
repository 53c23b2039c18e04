# SPDX-License-Identifier: Apache-2.0
# tables.sql as the tables of each shard; distributed.sed makes those over them.
s/^CREATE TABLE IF NOT EXISTS \([a-z_]*\)_rows/CREATE TABLE IF NOT EXISTS \1_local ON CLUSTER '{cluster}'/
