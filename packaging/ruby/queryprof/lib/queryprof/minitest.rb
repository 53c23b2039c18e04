# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

require 'minitest'
require 'queryprof'

module Queryprof
  # For minitest: `require 'queryprof/minitest'`, then
  #
  #   def test_orders
  #     assert_query_limits(db, max_scan: 1000) { orders_of(db, 7) }
  #   end
  module Assertions
    # Like Queryprof.limits(), but a statement that exceeds a limit fails the test.
    def assert_query_limits(connection, **limits, &work)
      result = Queryprof.limits(connection, **limits, &work)
      assert true
      result
    rescue LimitExceeded => e
      flunk e.message
    end
  end
end

Minitest::Test.include(Queryprof::Assertions)
