#!/usr/bin/env python3
"""Records what transformers' jinja2 environment makes of the templates in this folder.

    pip install jinja2
    python3 record.py

Writes renders.json (every *.jinja with every conversation) and snippets.json (snippets.py). Of an error they keep its
kind: "syntax" for the template itself, "run" for its use, "raised" with the template's own words. The environment is the one
that transformers renders chat templates in: https://github.com/huggingface/transformers, utils/chat_template_utils.py.
"""

import datetime
import json
import os
import pathlib
import time

os.environ["TZ"] = "UTC"
time.tzset()

import jinja2
import jinja2.ext
import jinja2.sandbox

from snippets import MESSAGES, SNIPPETS, VARIABLES

NOW = 1750000000
FOLDER = pathlib.Path(__file__).parent


class Generation(jinja2.ext.Extension):
    """{% generation %}: marks text of the model, which matters to training only."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return datetime.datetime.fromtimestamp(NOW).strftime(format)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def render(source, messages, add_generation_prompt, variables):
    known = {"tools": None, "documents": None, "bos_token": "<s>", "eos_token": "</s>", **variables}
    try:
        template = environment().from_string(source)
        return {"text": template.render(messages=messages, add_generation_prompt=add_generation_prompt, **known)}
    except (jinja2.exceptions.TemplateSyntaxError, SyntaxError):
        return {"error": "syntax"}
    except Exception as error:
        # raise_exception raises the base class, and what it says is for the user.
        raised = type(error) is jinja2.exceptions.TemplateError
        return {"error": "raised", "message": str(error)} if raised else {"error": "run"}


def main():
    conversations = json.loads((FOLDER / "conversations.json").read_text(encoding="utf-8"))
    renders = []
    for path in sorted(FOLDER.glob("*.jinja")):
        source = path.read_bytes().decode("utf-8")
        for conversation in conversations:
            for prompt in (True, False):
                result = render(source, conversation["messages"], prompt, conversation["variables"])
                renders.append({"template": path.name, "conversation": conversation["name"], "prompt": prompt, **result})
    write("renders.json", renders)

    snippets = []
    for group, sources in SNIPPETS.items():
        for source in sources:
            snippets.append({"group": group, "template": source, **render(source, MESSAGES, True, VARIABLES)})
    write("snippets.json", {"now": NOW, "messages": MESSAGES, "variables": VARIABLES, "snippets": snippets})


def write(name, content):
    text = json.dumps(content, ensure_ascii=True, indent=1)
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
