-- SPDX-License-Identifier: Apache-2.0
-- What processes that came after number :before have lost, and why.
SELECT reason, sum(samples), sum(refusals)
FROM losses
WHERE process > :before
GROUP BY reason;
