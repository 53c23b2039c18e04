# SPDX-License-Identifier: Apache-2.0
# frozen_string_literal: true

require 'json'
require 'queryprof/limits'

# Where the time of SQLite queries goes: a sampling profiler inside the process.
#
#   require 'queryprof'
#   require 'sqlite3'
#
#   db = Queryprof.load(SQLite3::Database.new('app.db'), query_profiler_cpu_time_period_ns: 1_000_000)
#   Queryprof.labels(db, route: 'users') { db.execute('SELECT ...') }
#   db.execute('SELECT query, count(*) FROM trace_log GROUP BY query')
#
# From outside: `queryprof record -- ruby app.rb`. A connection is an SQLite3::Database; Active Record's is
# ActiveRecord::Base.connection.raw_connection.
module Queryprof
  VERSION = 'VERSION'
  FOLDER = File.expand_path('../vendor', __dir__)

  # The path of the command.
  COMMAND = File.join(FOLDER, 'bin', 'queryprof')

  # The path of the SQLite extension and C library.
  LIBRARY = File.join(FOLDER, 'lib', 'libqueryprof.so')

  module_function

  # Loads the extension into a connection, changes settings, and returns the connection. SQLite3's error names the setting, its
  # value and what is allowed.
  def load(connection, **settings)
    connection.enable_load_extension(true)
    begin
      connection.load_extension(LIBRARY)
    ensure
      connection.enable_load_extension(false)
    end
    set(connection, settings)
    connection
  end

  # Changes settings of a connection that has the extension. docs/sql-reference.md lists their names.
  def set(connection, settings)
    # Not a PRAGMA, because SQLite ignores unknown ones.
    settings.each { |name, value| connection.execute('SELECT set_setting(?, ?)', [name.to_s, value]) }
  end

  # Adds labels to the connection's queries in the block.
  def labels(connection, **pairs)
    before = connection.get_first_value('PRAGMA query_profiler_labels')
    before = '{}' if before.nil? || before.empty?
    set_labels(connection, JSON.parse(before).merge(pairs.transform_keys(&:to_s)).to_json)
    yield
  ensure
    set_labels(connection, before) if before
  end

  def set_labels(connection, text)
    connection.execute("PRAGMA query_profiler_labels = '#{text.gsub("'", "''")}'")
  end
  private_class_method :set_labels
end
