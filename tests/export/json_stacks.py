# SPDX-License-Identifier: Apache-2.0
"""The JSON export as a list with an entry for each stack of each query and thread. Values replace the numbers
that refer to them."""

import json


def functions(document, frame):
    """The functions of a frame, inlined ones first."""
    known = dict(document["modules"][frame["module"]], offset=frame["offset"]) if "module" in frame else {}
    known = {{"path": "module"}.get(name, name): value for name, value in known.items()}
    *inlined, last = [dict(line, **known) for line in frame["lines"]]
    return [dict(line, inlined=True) for line in inlined] + [last]


def read(text):
    document = json.loads(text)
    stacks = []
    for sample in document["samples"]:
        stack = document["stacks"][sample["stack"]]
        labels = document["labels"][sample["labels"]]
        stacks.append({
            "trace_type": document["trace_type"], "unit": document["unit"],
            **{name: sample[name] for name in ("samples", "weight", "value")},
            **labels, "statement": document["statements"][labels["statement"]],
            "truncated": stack.get("truncated", False),
            "frames": [function for number in stack["frames"]
                       for function in functions(document, document["frames"][number])]})
    return stacks
