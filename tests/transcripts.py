"""Commands with their output as documentation shows them: taken out of a page, run, and compared.

A transcript is lines ``$ command`` with the output below each. ``...`` stands for anything within a line, or, as the
last line, for all that follows. ``$ cat FILE`` shows a file that the next commands read; ``$ echo $?`` the exit code.

``python tests/transcripts.py`` writes the output of today into the README and the man pages.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from golden_text import without_totals

from dgxcheck.cli import main


class Step(NamedTuple):
    """One command and the output shown below it."""

    command: str
    output: str


FENCED = re.compile(r"^(```console\n)(.*?)^(```)$", re.DOTALL | re.MULTILINE)
"""A ``console`` block of a Markdown page."""
LITERAL = re.compile(r"^(\.Bd -literal.*?\n)(.*?)^(\.Ed)$|^(\.Dl )(.*?\n)", re.DOTALL | re.MULTILINE)
"""A literal display, or one of one line, of a man page's source."""


def fenced(markdown: str) -> list[str]:
    """The transcripts of a Markdown page."""
    return [match[2] for match in FENCED.finditer(markdown)]


def literal(mdoc: str) -> list[str]:
    """The transcripts of a man page's source."""
    return [unescaped(match[2] or match[5]) for match in LITERAL.finditer(mdoc)]


def unescaped(mdoc: str) -> str:
    return mdoc.replace("\\&", "").replace("\\e", "\\")


def escaped(text: str) -> str:
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e"), flags=re.MULTILINE)


def steps(block: str) -> list[Step]:
    """The commands of a block; what stands above the first is no transcript."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return [Step(command, output) for command, output in zip(parts[::2], parts[1::2], strict=True)]


def played(block: str, aliases: Mapping[str, str]) -> Iterator[tuple[Step, str]]:
    """Every step of a block with what it prints now, messages last; files are made in the current directory."""
    code = 0
    for step in steps(block):
        words = shlex.split(aliases.get(step.command, step.command))
        printed = step.output
        if step.command == "echo $?":
            printed = f"{code}\n"
        elif words[0] == "cat":
            with open(words[1], "w", encoding="utf-8") as file:
                file.write(step.output)
        elif words[0] == "dgxcheck":
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                code = main(words[1:])
            printed = out.getvalue() + err.getvalue()
        else:
            raise AssertionError(f"nothing runs {step.command!r}; show it in another kind of block")
        yield step, printed


def run(block: str, aliases: Mapping[str, str] | None = None) -> None:
    """Play a block and compare."""
    for step, printed in played(block, aliases or {}):
        compare(step.command, printed, step.output)


def compare(command: str, printed: str, expected: str) -> None:
    """Equal but for what ``...`` stands for, and for totals."""
    printed, expected = without_totals(printed), without_totals(expected)
    shown, _, _ = expected.rpartition("...\n") if expected.endswith("\n...\n") else (expected, "", "")
    pattern = ".*".join(map(re.escape, shown.split("...")))
    found = re.match(pattern, printed) if shown != expected else re.fullmatch(pattern, printed)
    if found is None:
        # an exact comparison, for its readable difference
        assert printed == expected, command


def recipe(makefile: str, target: str) -> str:
    """The command behind a target of the Makefile, without its virtual environment."""
    found = re.search(rf"^{target}:.*\n\t@?\$\(BIN\)/(.*)$", makefile, re.MULTILINE)
    assert found, target
    return found[1]


def rewritten(block: str, aliases: Mapping[str, str]) -> str:
    """The block with the output of today; what ``...`` stands for stays hidden, and nothing is run on this machine.

    Where only totals differ nothing changes.
    """
    known = ("--from", "dgxcheck recordings", "dgxcheck diff dgx", "dgxcheck integrate", *aliases)
    if not any(name in block for name in known):
        return block
    said = [block[: block.index("$ ")]]
    for (command, shown), printed in played(block, aliases):
        if shown.endswith("\n...\n"):
            lines = printed.splitlines(keepends=True)
            printed = "".join([*lines[: shown.count("\n") - 1], "...\n"])
        elif "..." in shown or without_totals(printed) == without_totals(shown):
            printed = shown
        said.append(f"$ {command}\n{printed}")
    return "".join(said)


PICTURES = {"topo": ("topo", "dgx-1-v100"), "health": ("health", "dgx-1-v100-gpu-lost")}
"""Of the README, in the folder of the man pages: the command that draws each, and the recording."""


def picture(name: str, folder: Path) -> str:
    command, recording = PICTURES[name]
    path = folder / f"{name}.svg"
    main([command, "--format", "svg", "-o", str(path), "--from", recording])
    return path.read_text(encoding="utf-8")


def _rewrite_all(root: Path) -> None:
    for name in PICTURES:
        picture(name, root / "man")
    aliases = {"make demo": recipe((root / "Makefile").read_text(encoding="utf-8"), "demo")}
    readme = root / "README.md"
    text = FENCED.sub(lambda m: f"{m[1]}{rewritten(m[2], aliases)}{m[3]}", readme.read_text(encoding="utf-8"))
    readme.write_text(text, encoding="utf-8")
    for page in sorted((root / "man").glob("*.[1-9]")):
        parts = re.split(r"^(?=\.Sh )", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        page.write_text("".join(map(_again, parts)), encoding="utf-8")


def _again(section: str) -> str:
    if not section.startswith(".Sh EXAMPLES\n"):
        return section
    return LITERAL.sub(lambda m: f"{m[1]}{escaped(rewritten(unescaped(m[2]), {}))}{m[3]}" if m[2] else m[0], section)


if __name__ == "__main__":
    checkout = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        _rewrite_all(checkout)
