# SPDX-License-Identifier: Apache-2.0
"""Whether what a command printed with --format json is what docs/output.schema.json says. Without python3-jsonschema, nothing
is checked; tools/setup installs it."""

import json
import os

try:
    import jsonschema
except ImportError:
    jsonschema = None

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "output.schema.json")


def read():
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)


def errors(name, found):
    """Sentences; `name` is a definition of the schema."""
    if not jsonschema:
        return []
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": read()["$defs"]})
    return ["%s: %s" % (error.json_path, error.message) for error in validator.iter_errors(found)]
