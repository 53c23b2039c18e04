#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Coroutines of a language that switch inside an SQL function, under `queryprof record`: three statements begin one
inside the other's function, and end in another order. The host's results are the same as without queryprof, and each
statement has its own samples.

usage: test_coroutines.py QUERYPROF NAME"""

import sys

import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from recording import *

COUNT = 3
ORDER = [1, 2, 0]  # neither the order of the beginnings nor its reverse
TEXTS = [SLOW.replace("SELECT sum(x) FROM c", "SELECT pause(%d) + sum(x) FROM c" % i) for i in range(COUNT)]
WANTED = "".join("%d: %d\n" % (i, int(ANSWER) + i) for i in ORDER)

# By language: a program, and the command that tests whether the language has everything that the test needs.
LANGUAGES = {
    "php": (["php", "-r"], "new SQLite3(':memory:'); new Fiber(fn() => 0);", """
$fibers = [];
foreach (%r as $i => $text) {
    $fibers[] = $fiber = new Fiber(function () use ($i, $text) {
        $db = new SQLite3(':memory:');
        $db->createFunction('pause', function ($x) { static $paused = []; if (!isset($paused[$x])) {
            $paused[$x] = true; Fiber::suspend(); } return $x; });
        $sum = $db->querySingle($text);
        echo $i, ': ', $sum, "\\n";
    });
    $fiber->start();
}
foreach (%r as $i) $fibers[$i]->resume();
""" % (TEXTS, ORDER)),
    "ruby": (["ruby", "-e"], "require 'sqlite3'", """require 'sqlite3'
fibers = %r.each_with_index.map do |text, i|
  fiber = Fiber.new do
    paused = false
    db = SQLite3::Database.new(':memory:')
    db.create_function('pause', 1) { |f, x| Fiber.yield unless paused; paused = true; f.result = x }
    puts "#{i}: #{db.execute(text)[0][0]}"
  end
  fiber.resume
  fiber
end
%r.each { |i| fibers[i].resume }
""" % (TEXTS, ORDER)),
    "python": ([PYTHON, "-c"], "import greenlet, sqlite3", """import greenlet, sqlite3
main = greenlet.getcurrent()
def run(i, text):
    paused = []
    def pause(x):
        if not paused:
            paused.append(x)
            main.switch()
        return x
    db = sqlite3.connect(':memory:')
    db.create_function('pause', 1, pause)
    print('%%d: %%d' %% (i, db.execute(text).fetchone()[0]), flush=True)
texts = %r
coroutines = [greenlet.greenlet(run) for text in texts]
for i, text in enumerate(texts):
    coroutines[i].switch(i, text)
for i in %r:
    coroutines[i].switch()
""" % (TEXTS, ORDER)),
}


class Coroutines(Recording):
    def test_each_has_its_own(self):
        plain = subprocess.run([*COMMAND, PROGRAM], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((plain.returncode, plain.stdout), (0, WANTED), plain.stderr)
        done = self.record(*COMMAND, PROGRAM)
        self.assertEqual((done.returncode, done.stdout), (0, WANTED), self.seen)
        for text in TEXTS:
            if NAME != "python":
                self.expect_sampled(1, text)
                continue
            # The stack of a waiting greenlet is copied away, so its statement seems to have ended. A later step counts
            # as another run, which is logged if it has a sample.
            found = [real for query, _, real, _ in self.queries() if query == text]
            self.assertTrue(found, self.seen)
            self.assertGreaterEqual(found[0], 10, self.describe(text))


NAME = sys.argv.pop(1)
COMMAND, QUESTION, PROGRAM = LANGUAGES[NAME]
question = subprocess.run([*COMMAND, QUESTION], capture_output=True, text=True, timeout=300, check=False)
if question.returncode:
    print(f"{NAME} is not here: {question.stderr}")
    sys.exit(SKIPPED)
unittest.main()
