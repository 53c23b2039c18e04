-- SPDX-License-Identifier: Apache-2.0
-- The losses of the processes after number :before, and their reasons.
SELECT reason, sum(samples), sum(refusals)
FROM losses
WHERE process > :before
GROUP BY reason;
