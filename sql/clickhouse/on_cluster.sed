# SPDX-License-Identifier: Apache-2.0
s/^CREATE VIEW IF NOT EXISTS \([a-z_]*\)/& ON CLUSTER '{cluster}'/
