#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The SQL comments of Rails and Django become labels. The programs run under `queryprof record` and
do not use queryprof themselves. If a framework is not installed, its tests are skipped.
`tools/setup --all` installs Debian's packages. Rails has query_log_tags since 7.0. Debian 12 has
Rails 6.1 with annotate(). For a newer Rails, set
RUBYLIB=…/activerecord/lib:…/activesupport/lib:…/activemodel/lib. Django writes its comments with
sqlcommenter's middleware if PYTHONPATH contains it, or else with a similar wrapper in this file.

usage: test_frameworks.py QUERYPROF [unittest arguments]"""

import json
import os
import subprocess
import sqlite3
import sys
import tempfile
import unittest

QUERYPROF = os.path.abspath(sys.argv.pop(1))
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2000000) SELECT sum(x) FROM c"

RAILS_CHECK = """
begin
  require 'logger'
  require 'erb'
  require 'active_record'
  require 'sqlite3'
rescue LoadError => error
  abort error.message
end
"""

RAILS_TAGS_CHECK = RAILS_CHECK + """
abort "activerecord #{ActiveRecord::VERSION::STRING} has no query_log_tags" unless defined?(ActiveRecord::QueryLogs)
"""

RAILS_ANNOTATE = """
require 'active_record'
ActiveRecord::Base.establish_connection(adapter: 'sqlite3', database: ':memory:')
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define { create_table(:users) { |t| t.string :name } }
class User < ActiveRecord::Base; end
User.annotate("controller='users',action='a%%20show'").from("(%s) users").pluck(Arel.sql('*'))
""" % SLOW.replace('"', '\\"')

RAILS = RAILS_TAGS_CHECK + """
format, prepend = ARGV
ActiveRecord::Base.establish_connection(adapter: 'sqlite3', database: ':memory:')
# The effect of `config.active_record.query_log_tags_enabled = true`.
ActiveRecord.query_transformers << ActiveRecord::QueryLogs
ActiveRecord::QueryLogs.taggings = { application: 'Blog', controller: ->(context) { context[:controller] },
                                     action: -> { 'a show/%%' } }
ActiveRecord::QueryLogs.tags = %%i[application controller action]
ActiveRecord::QueryLogs.prepend_comment = prepend == 'prepend'
ActiveRecord::QueryLogs.update_formatter(format.to_sym) if ActiveRecord::QueryLogs.respond_to?(:update_formatter)
%%w[users posts].each do |name|
  ActiveSupport::ExecutionContext.set(controller: name) { ActiveRecord::Base.connection.select_value("%s") }
end
""" % SLOW

DJANGO = """
import django
from django.conf import settings
try:
    import google.cloud.sqlcommenter.django.middleware
    middleware = ['google.cloud.sqlcommenter.django.middleware.SqlCommenter']
except ImportError:
    middleware = ['__main__.Commenter']
settings.configure(DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}},
                   MIDDLEWARE=middleware, ROOT_URLCONF='__main__', ALLOWED_HOSTS=['*'], SECRET_KEY='x',
                   SQLCOMMENTER_WITH_FRAMEWORK=True)
django.setup()
from urllib.parse import quote
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import path, resolve

class Commenter:
    # Keys and values are percent-encoded, quotes in values escaped, keys in order.
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        match = resolve(request.path)
        labels = {'controller': match.view_name, 'route': match.route, 'framework': 'django:' + django.get_version()}
        comment = ','.join("%%s='%%s'" %% (quote(key), quote(value)) for key, value in sorted(labels.items()))
        with connection.execute_wrapper(lambda execute, sql, params, many, context: execute(
                sql + ' /*' + comment.replace('%%', '%%%%' if params else '%%') + '*/', params, many, context)):
            return self.get_response(request)

def view(request, name):
    with connection.cursor() as cursor:
        cursor.execute("%s")
        return HttpResponse(str(cursor.fetchall()))

urlpatterns = [path('users/<name>', view, name='users show')]
assert Client().get('/users/ada').status_code == 200
""" % SLOW


def missing(*command):
    """Returns the reason why the command cannot run, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


class Frameworks(unittest.TestCase):
    def record(self, *command):
        with tempfile.TemporaryDirectory(prefix="queryprof-frameworks-") as folder:
            trace = os.path.join(folder, "app.trace")
            done = subprocess.run([QUERYPROF, "record", "-o", trace, "--no-symbols", "--cpu", "1ms", "--setting",
                                   "query_profiler_max_overhead_percent=0", "--", *command],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with sqlite3.connect(trace) as db:
                rows = db.execute("SELECT DISTINCT t.labels, q.labels, q.query, normalized_query_hash FROM trace_log AS t"
                                  " JOIN query_log AS q USING (query_id) WHERE q.query LIKE '%RECURSIVE%'").fetchall()
            for of_sample, of_query, query, _ in rows:
                self.assertEqual(of_sample, of_query)
                print(query, "->", of_query)
            return [json.loads(row[0]) for row in rows], {row[3] for row in rows}

    def rails(self, form, place):
        why = missing("ruby", "-e", RAILS_TAGS_CHECK)
        if why:
            self.skipTest("Rails: " + why)
        labels, statements = self.record("ruby", "-e", RAILS, form, place)
        self.assertEqual(sorted(labels, key=str), [
            {"application": "Blog", "controller": name, "action": "a show/%"} for name in ("posts", "users")])
        self.assertEqual(len(statements), 1)

    def test_rails_annotate(self):
        why = missing("ruby", "-e", RAILS_CHECK)
        if why:
            self.skipTest("Rails: " + why)
        labels, _ = self.record("ruby", "-e", RAILS_ANNOTATE)
        self.assertEqual(labels, [{"action": "a show", "controller": "users"}])

    def test_rails_tags(self):
        for form in "legacy", "sqlcommenter":
            for place in "append", "prepend":
                with self.subTest(form=form, place=place):
                    self.rails(form, place)

    def test_django(self):
        why = missing("/usr/bin/python3", "-c", "import django")
        if why:
            self.skipTest("Django: " + why)
        labels, statements = self.record("/usr/bin/python3", "-c", DJANGO)
        self.assertEqual(len(labels), 1)
        self.assertEqual(labels[0]["controller"], "users show")
        self.assertEqual(labels[0]["route"], "users/<name>")
        self.assertRegex(labels[0]["framework"], "^django:")
        self.assertEqual(len(statements), 1)


if __name__ == "__main__":
    unittest.main()
