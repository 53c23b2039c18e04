#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the libraries that are linked into a release, with versions and licences (SPDX 2.3, JSON). THIRD-PARTY.md says what each
is for.

usage: sbom.py VERSION EPOCH FOLDER [ROOT]
ROOT contains the unpacked packages of a cross build (cmake/aarch64/make_root); without it, this machine's packages are listed.
Writes FOLDER/queryprof.spdx.json, and Debian's licence texts to FOLDER/licences/."""
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The Debian packages whose archives are linked: name, package, licence.
LINKED = (("SQLite", "libsqlite3-dev", "blessing"),
          ("GNU libiberty", "libiberty-dev", "LGPL-2.1-or-later"),
          ("libgcc and libstdc++", "libgcc-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1"),
          ("protobuf-c", "libprotobuf-c-dev", "BSD-2-Clause"),
          ("zlib", "zlib1g-dev", "Zlib"),
          ("LZ4", "liblz4-dev", "BSD-2-Clause"),
          ("Zstandard", "libzstd-dev", "BSD-3-Clause OR GPL-2.0-only"))
OF_MUSL = ("start files of musl", "musl-dev", "MIT")  # in libqueryprof-musl.so


def pinned(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def installed(package, root):
    if root:  # a root has no list of packages
        with gzip.open(os.path.join(root, f"usr/share/doc/{package}/changelog.Debian.gz"), "rt") as file:
            return re.search(r"\((.*?)\)", file.readline()).group(1)
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], stdout=subprocess.PIPE, text=True, check=True).stdout


def package(name, version, licence, **more):
    return {"SPDXID": "SPDXRef-" + re.sub("[^A-Za-z0-9.]+", "-", name), "name": name, "versionInfo": version, "licenseConcluded": licence,
            "licenseDeclared": licence, "downloadLocation": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False, **more}


def packages(version, linked):
    yield package("queryprof", version, "Apache-2.0")
    for name, debian, licence, root in linked:
        found = installed(debian, root)
        yield package(name, found, licence, externalRefs=[{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{debian}@{found}"}])
    pin = pinned("third_party/libunwind/pin")
    yield package("LLVM libunwind", re.search(r"\d+\.\d+\.\d+", pin).group(), "Apache-2.0 WITH LLVM-exception",
                  checksums=[{"algorithm": "SHA256", "checksumValue": re.search(r"\b[0-9a-f]{64}\b", pin).group()}])
    pin = pinned("third_party/sqlite/pin")
    yield package("SQLite of the command", re.search(r"\d+\.\d+\.\d+", pin).group(), "blessing",
                  checksums=[{"algorithm": "SHA256", "checksumValue": re.search(r"\b[0-9a-f]{64}\b", pin).group()}])
    lock = json.loads(pinned("third_party/flamegraph/package-lock.json"))
    for path, entry in sorted(lock["packages"].items()):
        if path and not entry.get("dev"):
            name = path.rpartition("node_modules/")[2]
            yield package("npm " + name, entry["version"], entry.get("license", "NOASSERTION"), externalRefs=[{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:npm/{name}@{entry['version']}"}])


def main():
    version, epoch, folder, *roots = sys.argv[1:]
    root = roots[0] if roots else ""
    has_musl = glob.glob(os.path.join(folder, "../../../lib/**/libqueryprof-musl.so"), recursive=True)
    # The cross compiler's package contains the compiler's libraries.
    linked = [(name, debian + "-arm64-cross", licence, "") if root and debian.startswith("libgcc-") else (name, debian, licence, root)
              for name, debian, licence in LINKED + (OF_MUSL,) * bool(has_musl)]
    found = list(packages(version, linked))
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"queryprof-{version}",
        "documentNamespace": "urn:queryprof:" + hashlib.sha256(json.dumps(found).encode()).hexdigest(),
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(epoch))), "creators": ["Tool: queryprof-tools-release"]},
        "packages": found,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-queryprof"}] + [
            {"spdxElementId": "SPDXRef-queryprof", "relationshipType": "CONTAINS", "relatedSpdxElement": each["SPDXID"]} for each in found[1:]],
    }
    os.makedirs(os.path.join(folder, "licences"), exist_ok=True)
    with open(os.path.join(folder, "queryprof.spdx.json"), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    for _, debian, _, root in linked:
        shutil.copyfile(f"{root}/usr/share/doc/{debian}/copyright", os.path.join(folder, "licences", debian))
    for name in "LICENSE", "THIRD-PARTY.md":
        shutil.copyfile(os.path.join(ROOT, name), os.path.join(folder, "licences", name))


main()
