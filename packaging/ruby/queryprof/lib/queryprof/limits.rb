# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

require 'securerandom'

module Queryprof
  # A statement exceeded a limit. `violations`: pairs of the limit's name and a sentence.
  class LimitExceeded < StandardError
    attr_reader :violations

    def initialize(violations)
      super(violations.map { |name, message| "#{name}: #{message}" }.join("\n"))
      @violations = violations
    end
  end

  WHILE = { 'log_queries' => '1', 'log_queries_min_query_duration_ns' => '0' }.freeze

  FOUND = <<~SQL
    SELECT query, max(fullscan_steps), sum(sorts), sum(autoindexes), max(execution_time_ns), count(*) FROM system.query_log
    WHERE labels ->> 'queryprof_limits' = ? AND type <> 'QueryStart' GROUP BY normalized_query_hash
  SQL
  private_constant :WHILE, :FOUND

  # Runs the block and returns its value. Raises LimitExceeded at the end if a statement that the connection ran in the block
  # exceeded a limit:
  #
  #   Queryprof.limits(db, max_scan: 1000, no_sort: true, max_runs: 20) { orders_of(db, customer) }
  #
  # max_scan: the most rows that one run may visit in scans of whole tables. max_time: the longest time of one run inside SQLite, in
  # seconds. max_runs: the most runs of one statement in the block, for example of one that runs for each row of another statement.
  # Loads the extension if the connection does not have it. In the block, statements have the label queryprof_limits. Afterwards the
  # settings are restored.
  def self.limits(connection, max_scan: nil, no_sort: false, no_auto_index: false, max_time: nil, max_runs: nil, &work)
    before = settings_of(connection)
    mark = SecureRandom.uuid
    begin
      set(connection, WHILE)
      result = labels(connection, queryprof_limits: mark, &work)
      found = connection.prepare(FOUND) { |statement| statement.execute(mark).map(&:to_a) }
    ensure
      set(connection, before)
    end
    violations = found.flat_map do |query, scanned, sorts, indexed, ns, runs|
      [[:max_scan, max_scan && scanned > max_scan, "a run visited #{scanned} rows of whole tables"],
       [:no_sort, no_sort && sorts.positive?, "#{sorts} sorts in #{runs} runs"],
       [:no_auto_index, no_auto_index && indexed.positive?, "#{indexed} rows put into automatic indexes"],
       [:max_time, max_time && ns > max_time * 1e9, format('the longest run took %.3f ms', ns / 1e6)],
       [:max_runs, max_runs && runs > max_runs, "#{runs} runs"]]
        .select { |_, is_exceeded, _| is_exceeded }.map { |name, _, message| [name, "#{message}: #{query.split.join(' ')}"] }
    end
    raise LimitExceeded, violations unless violations.empty?

    result
  end

  # Returns the settings that limits() changes. Loads the extension if the connection does not have it.
  def self.settings_of(connection)
    read = -> { WHILE.keys.to_h { |name| [name, connection.get_first_value('SELECT get_setting(?)', [name]).to_s] } }
    read.call
  rescue SQLite3::SQLException
    load(connection)
    read.call
  end
  private_class_method :settings_of
end
