# SPDX-License-Identifier: Apache-2.0
"""A generated package index for the tests, in the form of `apt-cache dumpavail`."""

FIRST = """\
Package: alpha
Version: 1.0-1
Installed-Size: 120
Maintainer: Jörg Example <joerg@example.org>
Architecture: amd64
Source: greek (1.0)
Depends: libc6:any (>= 2.34), beta | gamma (<< 3~),
 delta
Pre-Depends: dpkg
Suggests: editor-1
Description: first letter; has a colon: here
Homepage: https://example.org/
Tag: a::b,
 c::d
Section: games
Priority: optional
Filename: pool/a.deb
Size: 4096

Package: alpha
Version: 0.9-1
Maintainer: nobody
Architecture: amd64
Description: an older alpha that must not replace the newer
Section: games
Filename: pool/old.deb
Size: 1

Package: installed-here-only
Version: 1
Maintainer: nobody
Architecture: amd64
Description: in no archive
Section: misc

"""


def package_index(packages):
    """Returns FIRST and `packages` packages of one pattern. Each depends on the previous one."""
    stanzas = [FIRST]
    for i in range(packages):
        stanzas.append(
            f"Package: package-{i:05}\nVersion: {i}\nInstalled-Size: {i}\n"
            f"Maintainer: Person {i % 97} <p{i % 97}@example.org>\nArchitecture: all\n"
            + (f"Depends: package-{i - 1:05}, alpha\n" if i else "")
            + f"Description: a query tool, number {i}, like package-{i * 7 % packages:05}\n"
            f"Section: {'devel' if i % 20 else 'sound'}\nPriority: optional\nFilename: pool/{i}.deb\nSize: {i}\n\n")
    return "".join(stanzas)
