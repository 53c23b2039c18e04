# SPDX-License-Identifier: Apache-2.0
# tables.sql, views.sql and recipes.sql for servers before 20.8, as Debian's 18.16: labels are JSON texts there,
# nothing is interned, and old partitions are dropped by hand.
/-- newer$/d
s/LowCardinality(String)/String/g
s/Map(String, String)/String/g
s/ CODEC(.*)\(,\{0,1\}\)$/\1/
