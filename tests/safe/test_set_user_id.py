# SPDX-License-Identifier: Apache-2.0
"""A set-user-id program uses nothing from its caller's environment, and writes no file that the caller names."""

import shutil

from library import *

OTHER_USER = 65534  # nobody


class SetUserId(Case):
    def run_shell(self, mode):
        """Runs the stock shell with the extension. The caller tries to make it write files."""
        folder = self.path(f"{mode:o}")
        os.mkdir(folder)
        os.chmod(self.directory, 0o755)
        os.chmod(folder, 0o777)
        shell = self.path(f"sqlite3.{mode:o}")
        shutil.copy(shutil.which("sqlite3"), shell)
        os.chown(shell, OTHER_USER, -1)
        os.chmod(shell, mode)
        done = subprocess.run(
            [shell, ":memory:", f".load {LIBRARY}",
             "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 999999) SELECT sum(i) > 0 FROM c",
             "SELECT count(*) > 0 FROM trace_log",
             "SELECT group_concat(value, ' ') FROM system.settings WHERE name IN ('trace_log_path', 'log_queries')",
             "SELECT value FROM system.metrics WHERE metric = 'trace_log_path'"],
            env={**os.environ, "QUERYPROF_TRACE_LOG_PATH": f"{folder}/evil.trace", "QUERYPROF_LOG_QUERIES": "0",
                 "QUERYPROF_RECORD": f"{folder}/mark", "TMPDIR": folder},
            capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split("\n"), sorted(os.listdir(folder)), folder

    def test_writes_no_file_of_the_callers(self):
        output, files, folder = self.run_shell(0o755)
        self.assertIn("evil.trace", files)
        self.assertEqual(set(output[2].split()), {"0", f"{folder}/evil.trace"})
        output, files, folder = self.run_shell(0o4755)
        self.assertEqual(output[:2], ["1", "1"])  # it is sampled, into another file
        self.assertEqual(files, [])
        self.assertEqual(output[2].split(), ["1"])
        self.assertNotIn(folder, "\n".join(output))


if __name__ == "__main__":
    def reason():
        if not shutil.which("sqlite3"):
            return "there is no sqlite3"
        if os.getuid():
            return "only root can make a set-user-id program of another user"
        if os.statvfs(tempfile.gettempdir()).f_flag & os.ST_NOSUID:
            return "the temporary folder is mounted nosuid"

    if reason():
        print(f"skipped: {reason()}")
        sys.exit(77)
    unittest.main()
