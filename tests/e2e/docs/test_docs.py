"""Runs the examples of the documentation: what a document shows is what the program prints.

A block fenced as ```console shows commands and their output. Each command in it that begins with `$ cheops scope` or
`$ cheops app` is run, in the document's folder, and must print exactly the lines that follow it: first standard output,
then standard error. A command goes on in the next line, which begins with `> `, where it ends with a backslash.
"""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENTS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]
MUST_HAVE_EXAMPLES = [ROOT / "docs" / "scope-lang.md", ROOT / "docs" / "descriptions.md"]


def blocks(text):
    """(number of its first line, lines) of each console block."""
    found, open_fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if open_fence is None:
            match = re.match(r"(`{3,})\s*(\S*)", line)
            if match:
                open_fence, lines, console, first = match.group(1), [], match.group(2) == "console", number + 1
        elif line.rstrip() == open_fence:
            if console:
                found.append((first, lines))
            open_fence = None
        else:
            lines.append(line)
    return found


def examples(path):
    """(line number, command, output) of each command that is to be run."""
    found = []
    for first, lines in blocks(path.read_text(encoding="utf-8")):
        current = None
        for number, line in enumerate(lines, first):
            if line.startswith("$ "):
                current = [number, line[2:], ""]
                if line.startswith(("$ cheops scope", "$ cheops app")):
                    found.append(current)
            elif current and current[1].endswith("\\") and line.startswith("> "):
                current[1] += "\n" + line[2:]
            elif current:
                current[2] += line + "\n"
    return found


ALL = [pytest.param(path, command, output, id=f"{path.relative_to(ROOT)}:{number}")
       for path in DOCUMENTS for number, command, output in examples(path)]


@pytest.mark.parametrize("path, command, output", ALL)
def test_example(cheops, path, command, output, tmp_path):
    (tmp_path / "cheops").symlink_to(cheops.path)
    result = cheops.shell(f'export PATH="{tmp_path}:$PATH"\n{command}', cwd=path.parent)
    assert result.out + result.err == output


@pytest.mark.parametrize("path", MUST_HAVE_EXAMPLES, ids=lambda path: path.name)
def test_has_examples(path):
    assert path.exists(), f"{path} is not there"
    assert examples(path), f"{path} shows no `$ cheops scope ...` or `$ cheops app ...` in a console block"


def test_the_reader_of_documents(tmp_path):
    document = tmp_path / "d.md"
    document.write_text("a\n```console\n$ cheops scope fmt \\\n> a\na\n\n$ ls\nx\n$ cheops scope fmt b\n```\n"
                        "```sh\n$ cheops scope fmt c\n```\n````console\n$ cheops scope fmt d\n```\n````\n")
    assert examples(document) == [[3, "cheops scope fmt \\\na", "a\n\n"], [9, "cheops scope fmt b", ""],
                                  [15, "cheops scope fmt d", "```\n"]]
