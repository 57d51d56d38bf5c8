"""How a result leaves the program: by whose function it is made, where it is written, with which exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from dgxcheck.facts.bdf import without_unplaced
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.plain_text import visible, wrap_sentences
from dgxcheck.package_files import table

if TYPE_CHECKING:
    from dgxcheck.checks.engine.finding import Status

_FOR_PEOPLE = ("text", "healthmon", "markdown", "html", "svg")
FAILING = {"warn": ("warn", "unknown", "fail"), "unknown": ("unknown", "fail"), "fail": ("fail",), "never": ()}
"""Verdicts that the exit code reports, by ``--fail-on``."""


def exit_code(verdict: Status, fail_on: str) -> int:
    """That of a verdict; 0 of one below ``--fail-on``."""
    from dgxcheck.checks.engine.run import EXIT_CODES

    return EXIT_CODES[verdict] if verdict.value in FAILING[fail_on] else 0


def formats(command: str) -> dict[str, str]:
    """The formats of a command, and the function of each for ``renderer``."""
    return {each["format"]: each["function"] for each in table("cli/formats.tsv", command)}


def renderer(place: str) -> Callable[[Any], str]:
    """``health.page.as_html``: a function below ``dgxcheck.output``, imported when its format is asked for."""
    module, _, name = place.rpartition(".")
    render: Callable[[Any], str] = getattr(import_module(f"dgxcheck.output.{module}"), name)
    return render


def emit(text: str, output: str | None, color: str = "never", form: str = "text", again: bool = False) -> None:
    """The result, to a file (whole or not at all) or to stdout, coloured where that is wanted.

    ``again``: the first paragraph is what matters, and stands at the end once more where a terminal scrolls it away.
    A ``form`` for programs is neither coloured nor broken into lines that fit a terminal; there, JSON is indented.

    Renderers make what is hostile visible where it stands; this is the net below them.
    """
    text = "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
    text = without_unplaced(text, named=form not in _FOR_PEOPLE)
    if form == "nvidia-smi" and text.startswith("\t"):  # which underlines the head of its matrix in pipes as well
        head, _, rest = text[1:].partition("\n")
        text = f"\t\x1b[4m{head}\x1b[0m\n{rest}"
    if output not in (None, "-"):
        if color == "always" and form == "text":
            text = renderer("color.colorize")(text)
        # node_exporter reads metrics as a user of its own, and the umask of root may be 077
        exactly = form in ("prometheus", "openmetrics")
        save(output, text, 0o644 if exactly else 0o666, exactly)
        return
    with writing_stdout():
        if form == "json" and sys.stdout.isatty():
            text = renderer("json_values.indented")(text)
        if form == "text" and sys.stdout.isatty():
            text = wrap_sentences(text, terminal_columns())
            if again and text.count("\n") >= os.get_terminal_size(sys.stdout.fileno()).lines:
                text += "\n" + text.partition("\n\n")[0] + "\n"
        if form == "text" and coloured(color):
            text = renderer("color.colorize")(text)
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def writing_stdout() -> Iterator[None]:
    """Where the reader has gone (head), click and rich would leave with 1."""
    try:
        yield
    except (BrokenPipeError, SystemExit):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise click.exceptions.Exit(3) from None
    except OSError as error:
        raise BadInput(f"stdout: cannot be written: {error.strerror}") from None


def check_writable(file: str, name: str) -> None:
    """A file that command ``name`` could not write is refused before the machine is asked."""
    if file == "-":
        raise BadInput(f"{name} cannot write to '-'; give a file name, or /dev/stdout")
    check_place(file)


def check_place(file: str) -> None:
    if os.path.isdir(file):
        raise BadInput(f"{file}: is a directory; give a file name")
    from dgxcheck.source.recording import save as saving

    try:
        saving.check_place(file)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None


def save(file: str, text: str, mode: int, exactly: bool = False) -> None:
    """Replace a file, whole or not at all; see ``replace_file`` for the mode."""
    from dgxcheck.source.recording.save import replace_file

    try:
        replace_file(file, text, mode, exactly)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror}") from None


def coloured(color: str) -> bool:
    """NO_COLOR, FORCE_COLOR and TERM=dumb are heeded as https://no-color.org and the terminals' custom have it."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def width(output: str | None) -> int | None:
    """Columns of the terminal that the result goes to; None where it goes to none, so that nothing is dropped."""
    return terminal_columns() if output in (None, "-") and sys.stdout.isatty() else None


def terminal_columns() -> int:
    """``COLUMNS``, else what the terminal says, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and len(columns) < 6 and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80
