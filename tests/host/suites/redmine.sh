#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests of Redmine from its source in the current folder, which is empty, with Debian's gems and SQLite.
#
#   redmine.sh SOURCE TESTS
set -e
cp -r "$1"/. .
cp "$(dirname "$0")/redmine/Gemfile" Gemfile
printf 'test:\n  adapter: sqlite3\n  database: db/test.sqlite3\n' > config/database.yml
export RAILS_ENV=test
# One run creates the tables, and another runs the tests.
ruby bin/rails db:migrate > migrate.log 2>&1 || { cat migrate.log; exit 1; }
exec ruby bin/rails test "$2" --verbose --seed 1
