# SPDX-License-Identifier: Apache-2.0
"""Checks the output of --format json against docs/output.schema.json. Without python3-jsonschema, which tools/setup
installs, nothing is checked."""

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
    """Error messages; `name` is a definition of the schema."""
    if not jsonschema:
        return []
    validator = jsonschema.Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": read()["$defs"]})
    return ["%s: %s" % (error.json_path, error.message) for error in validator.iter_errors(found)]
