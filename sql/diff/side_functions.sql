-- SPDX-License-Identifier: Apache-2.0
-- One side of a comparison (see sides.sql). After diff/stacks.sql. Two builds of a library differ in addresses and
-- version, so a function is its name and that of its module without what follows ".so".
SELECT hash, name, library, self, self_samples, self_square, total, total_samples, total_square FROM temp.report_functions;
