# SPDX-License-Identifier: Apache-2.0
# tables.sql as the tables over those of the shards: `queryprof push` sends to them, and the views read them. The
# server that gets a query forwards it. All rows of a file go to one shard, where rows that arrived twice meet.
/^CREATE TABLE/!d
s/ \([a-z_]*\)_rows ($/ \1_rows ON CLUSTER '{cluster}' AS \1_local\nENGINE = Distributed('{cluster}', currentDatabase(), '\1_local', file);\n/
