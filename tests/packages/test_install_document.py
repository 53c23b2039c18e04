#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each command of docs/install.md unchanged, in its blocks and in its table, in temporary copies of this system:
overlayfs in a mount namespace.

usage: test_install_document.py BUILD_DIR SOURCE_DIR PACKAGES_DIR [unittest arguments]; exit status 77: this system has no overlays"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE, PACKAGES = (os.path.realpath(path) for path in sys.argv[1:4])
SKIPPED = 77
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME": "/var/tmp/home", "LC_ALL": "C.UTF-8",
    "QUERYPROF_CACHE_DIR": os.environ.get("QUERYPROF_CACHE_DIR") or os.path.expanduser("~/.cache/queryprof"),
    # Nothing is downloaded.
    "APT_CONFIG": "/var/tmp/apt.conf", "DEBIAN_FRONTEND": "noninteractive", "npm_config_offline": "true", "PIP_NO_INDEX": "1",
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
}
APT = 'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "/dev/null"; APT::Sandbox::User "root";'
# $0: a folder; $1: the script; then folders on other file systems.
IN_COPY = """
mount -t tmpfs none "$0" && mkdir "$0/upper" "$0/work" "$0/root" || exit 77
mount -t overlay none -o "lowerdir=/,upperdir=$0/upper,workdir=$0/work" "$0/root" || exit 77
script=$1 root=$0/root
shift
for each; do mkdir -p "$root$each" && mount --rbind "$each" "$root$each" || exit 77; done
exec chroot "$root" bash -c "$script"
"""
# A connection for the document's example, because this machine's node may have no SQLite.
CONNECTION = "const db = { loadExtension(path) { require('fs').accessSync(path); }, exec: console.log };\n"


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


DOCUMENT = read("docs/install.md")
BLOCKS = {}  # by heading
for section in re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)[1:]:
    BLOCKS[section.splitlines()[0]] = [text for _, text in re.findall(r"^```([^\n]*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)]
TABLE = [re.findall(r"`([^`]+)`", row.split("|")[3]) for row in re.search(r"install with \|\n.*?\n\n", DOCUMENT, re.DOTALL).group().splitlines()[2:] if row]
CHECK = "".join(BLOCKS["Check the installation"])
NOTHING_LEFT = 'echo "left: $(find %s ! -type d -name "*queryprof*" | sort | tr "\\n" " ")"\n'


def in_copy(script, cwd="/var/tmp/work"):
    """Runs a script in a copy of the system. Each line must succeed. Returns its output."""
    with tempfile.TemporaryDirectory() as folder:
        top = os.stat("/").st_dev
        bound = ["/dev", "/proc", *(path for path in (SOURCE, BUILD, PACKAGES) if os.stat(path).st_dev != top and not path.startswith("/dev/"))]
        script = "printf '%%s\\n' '%s' >/var/tmp/apt.conf; mkdir -p ~ /var/tmp/work; cd '%s'; set -ex\n%s" % (APT, cwd, script)
        done = subprocess.run(["unshare", "--mount", "sh", "-c", IN_COPY, folder, script, *bound], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", env=ENVIRONMENT, timeout=600, check=False)
    if done.returncode:
        raise AssertionError("exit status %d\n%s\n%s" % (done.returncode, script, done.stdout))
    return done.stdout


class InstallDocument(unittest.TestCase):
    def expect_works(self, out):
        """The commands of "Check the installation" list the statement."""
        self.assertRegex(out, r"(?m)^ .* 1 .* SELECT 1$")
        self.assertIn("\nqueryprof " + re.search(r'QUERYPROF_VERSION "(.*)"', read("src/queryprof.h")).group(1) + "\n", out)

    def test_all_lines_are_here(self):
        """Fails if the document gets a new block or package, because none of these tests would run it."""
        self.assertEqual({heading: len(blocks) for heading, blocks in BLOCKS.items() if blocks},
                         {"Packages": 4, "Load the extension": 4, "Build and install": 1, "Install without root": 1, "Check the installation": 1,
                          "Link it to a program": 1, "Uninstall": 1})
        self.assertEqual([len(commands) for commands in TABLE], [1, 1, 2, 1, 1])

    @unittest.skipIf(BUILD != os.path.join(SOURCE, "build/release"), "the document builds in build/release")
    def test_build_and_install(self):
        build, = BLOCKS["Build and install"]
        link, = BLOCKS["Link it to a program"]
        uninstall, = BLOCKS["Uninstall"]
        sudo = "" if shutil.which("sudo") else "printf '#!/bin/sh\\nexec \"$@\"\\n' >/usr/local/bin/sudo; chmod +x /usr/local/bin/sudo\n"
        out = in_copy(sudo + build + "cd /var/tmp/work\n" + CHECK + "cp %s/tests/install/profile_query.c app.c\n" % SOURCE + link +
                      "./a.out\ncd %s\n" % SOURCE + uninstall + NOTHING_LEFT % "/usr/local", cwd=SOURCE)
        self.expect_works(out)
        self.assertRegex(out, "queries 1, cpu ")
        self.assertIn("\nleft: \n", out)

    def test_without_root(self):
        install, = BLOCKS["Install without root"]
        uninstall, = BLOCKS["Uninstall"]
        install = install.replace("build/release", BUILD)
        out = in_copy(install + "cd /var/tmp/work\n" + CHECK + uninstall.replace("build/release", BUILD) + NOTHING_LEFT % "~/.local", cwd=SOURCE)
        self.expect_works(out)
        self.assertIn("\nleft: \n", out)

    @unittest.skipUnless(shutil.which("apt"), "no apt")
    def test_debian_package(self):
        """Installs the package, and loads the extension in all ways, because it is then in the loader's path."""
        (apt,), _, _, _, _ = TABLE
        shell, ruby, php, run_php = BLOCKS["Load the extension"]
        lines = "cd /var/tmp/work\n" + CHECK + shell
        if shutil.which("ruby"):
            lines += "cat >app.rb <<'EOF'\n%sEOF\nruby app.rb\n" % ruby
        if shutil.which("php"):
            lines += "cat >app.php <<'EOF'\n%sEOF\n%s" % (php, run_php)
        out = in_copy(apt + "\n" + lines + "dpkg -P queryprof\n" + NOTHING_LEFT % "/usr/bin /usr/lib /usr/include", cwd=PACKAGES)
        self.expect_works(out)
        self.assertIn("\nleft: \n", out)

    @unittest.skipUnless(shutil.which("apt"), "no apt")
    def test_dockerfile(self):
        lines = BLOCKS["Packages"][3]
        script = re.sub("^COPY ", "cp ", re.sub("^RUN ", "", lines, flags=re.MULTILINE), flags=re.MULTILINE)
        self.assertEqual(len(re.findall("^(COPY|RUN) ", lines, re.MULTILINE)), len(lines.splitlines()))
        self.expect_works(in_copy(script + "cd /var/tmp/work\n" + CHECK, cwd=PACKAGES))

    def test_tar(self):
        _, (install,), _, _, _ = TABLE
        self.expect_works(in_copy("tar -xzf %s/queryprof-*.tar.gz\ncd queryprof-*\n%s\ncd /var/tmp/work\n%s" % (PACKAGES, install, CHECK)))

    @unittest.skipUnless(shutil.which("npm"), "no npm")
    def test_npm(self):
        _, _, (install, run), _, _ = TABLE
        out = in_copy("cp %s/*.tgz .\necho '{}' >package.json\n%s\n%s --help\n%scat >app.js <<'EOF'\n%sEOF\nnode app.js\n"
                      % (PACKAGES, install, run, re.sub("^queryprof", run, CHECK, flags=re.MULTILINE), CONNECTION + BLOCKS["Packages"][0]))
        self.expect_works(out)
        self.assertIn("\nSELECT set_setting('query_profiler_cpu_time_period_ns', '1000000')\n", out)

    @unittest.skipUnless(os.path.exists("/usr/bin/pip"), "no pip of the system's Python")
    def test_wheel(self):
        _, _, _, (install,), _ = TABLE
        self.expect_works(in_copy("cp %s/*.whl .\n%s\n%scat >app.py <<'EOF'\n%sEOF\npython3 app.py\n" % (PACKAGES, install, CHECK, BLOCKS["Packages"][1])))

    @unittest.skipUnless(shutil.which("gem"), "no gem")
    def test_gem(self):
        _, _, _, _, (install,) = TABLE
        self.expect_works(in_copy("cp %s/*.gem .\n%s\n%scat >app.rb <<'EOF'\n%sEOF\nruby app.rb\n" % (PACKAGES, install, CHECK, BLOCKS["Packages"][2])))


if __name__ == "__main__":
    try:
        in_copy("true")
    except (AssertionError, OSError) as refused:
        if isinstance(refused, OSError) or "exit status 77" in str(refused) or "unshare" in str(refused):
            print("no overlay here:", refused)
            sys.exit(SKIPPED)
        raise
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
