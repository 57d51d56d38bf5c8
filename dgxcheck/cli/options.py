"""Options that every command has, and how a result leaves the program."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dgxcheck.assessment.request import DEADLINE_S
from dgxcheck.facts.bdf import without_unplaced
from dgxcheck.facts.missing import BadInput
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.output.plain_text import visible, wrap_sentences

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


F = TypeVar("F", bound=Callable[..., Any])
_FOR_PEOPLE = ("text", "healthmon", "markdown", "html", "svg")


class LightCommand(click.Command):
    """One that is often run: finds ``-m`` and ``-q`` at once."""

    def make_parser(self, ctx: click.Context) -> Any:
        """click looks for short options among the long ones first; its way to say no imports difflib and gettext."""
        parser = super().make_parser(ctx)
        parser._long_opt.update(parser._short_opt)
        return parser


def seconds(_ctx: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """A time that is a number: ``nan`` is neither below nor above any limit."""
    if value is not None and value != value:
        raise click.BadParameter("nan is not a time")
    return value


def flag(names: str, text: str) -> Callable[[F], F]:
    """An option without a value."""
    return click.option(*names.split(), is_flag=True, help=text)


def option(names: str, kind: list[str] | tuple[Any, ...] | str, text: str, **more: Any) -> Callable[[F], F]:
    """An option with a value: one of a list of words, or what is called so, of a number with the least and the most."""
    if isinstance(kind, list):
        more["type"] = click.Choice(kind)
    else:
        name, *limits = (kind,) if isinstance(kind, str) else kind
        more = {"metavar": name, **_VALUES.get(name, {}), **more}
        if limits:
            more["type"] = (click.FloatRange if name == "SECONDS" else click.IntRange)(*limits)
    return click.option(*names.split(), **{"show_default": bool(more.get("default")), "help": text, **more})


_VALUES: Mapping[str, Mapping[str, Any]] = {
    "FILE": {"type": click.Path()}, "DIR": {"type": click.Path()}, "PROGRAM": {"type": click.Path()},
    "SECONDS": {"callback": seconds}, "TIME": {"callback": lambda *given: duration(*given)},
}  # fmt: skip
"""What values that are called so are."""


def deadline(command: F) -> F:
    """``--deadline``: how long the driver may take."""
    return option("--deadline", ("SECONDS", 1, 3600), "Time limit for all driver queries; what has not answered by"
                  " then is reported as missing.", default=DEADLINE_S)(command)


def _contain(ctx: click.Context, _option: click.Parameter, root: str | None) -> None:
    if root is not None and not ctx.resilient_parsing:
        ctx.obj.contain(root)


def _choose_host(ctx: click.Context, _option: click.Parameter, host: str) -> None:
    if host and not ctx.resilient_parsing:
        ctx.obj.host = host


def reading(command: F) -> F:
    """``--from``, ``--host``, ``--root`` and ``--deadline``: which machine is asked, how long its driver may take."""
    command = option("--root", "DIR", "In a container: read the host's files below DIR, where its / is mounted; NVML"
                     " is asked as usual.", expose_value=False, callback=_contain)(command)
    command = option("--host", "NAME", "With --from: of a text that holds output of several hosts, the one to examine.",
                     default="", expose_value=False, callback=_choose_host)(command)  # fmt: skip
    return option("--from spec", "SOURCE", "Examine a shipped recording, a recording or bug report, or a directory"
                  " with sys/, not this machine.", shell_complete=sources)(deadline(command))


def writable(ctx: click.Context, _option: click.Parameter, file: str | None) -> str | None:
    """A file that cannot be written is refused before the machine is asked, not after a burn-in."""
    if file not in (None, "-") and not ctx.resilient_parsing:
        _check_place(file)
    return file


def output_file(command: F) -> F:
    """``-o``: where the result goes."""
    help_text = "Write the result to FILE instead of stdout (-)."
    return click.option("-o", "--output", type=click.Path(), metavar="FILE", callback=writable, help=help_text)(command)


def writing(command: F) -> F:
    """``-o`` and ``--color``, of a command whose text has words that are coloured."""
    command = option("--color", ["auto", "always", "never"], "Colour the text; auto uses colour on a terminal unless"
                     " NO_COLOR is set.", default="auto")(command)
    return output_file(command)


def begin(names: Iterable[str], start: str, before: str = "", files: bool = False) -> list[CompletionItem]:
    """Names that begin so; with ``files`` these stand first, for bash drops what stands before them."""
    from click.shell_completion import CompletionItem

    items = [CompletionItem(f"{before}{name}") for name in names if name.lower().startswith(start.lower())]
    return [*([CompletionItem(start, type="file")] if files else []), *items]


def completing(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Completes to one of these names."""
    return lambda _ctx, _param, incomplete: begin(names(), incomplete)


def sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shipped recordings by name, and files."""
    from dgxcheck.source.recording.load import shipped

    return begin((name for name, _ in shipped()), incomplete, files=True)


def profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Reference machines by name, and files."""
    from dgxcheck.profiles import library

    return begin((*library.names(), "auto", "none"), incomplete, files=True)


def checks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids and subjects, the last of a list."""
    from dgxcheck.checks.registry import CHECKS

    before, comma, last = incomplete.rpartition(",")
    ids = [check.id for check in CHECKS]
    return begin(dict.fromkeys((*(each.partition(".")[0] for each in ids), *ids)), last, before + comma)


def devices(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """GPUs, and but for ``-i`` adapters, of the machine that ``--from`` names, else of this one."""
    from dgxcheck.assessment.machine import device_names

    before, comma, last = incomplete.rpartition(",")
    names = device_names(ctx.params.get("spec"))
    of_gpus = (name.removeprefix("GPU") for name in names if name.startswith("GPU"))
    return begin(of_gpus if "-i" in param.opts else names, last, before + comma)


def given(ctx: click.Context, *names: str) -> list[str]:
    """Those options of the names that the command line has."""
    return [name for name in names if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]


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
    _check_place(file)


def _check_place(file: str) -> None:
    if os.path.isdir(file):
        raise BadInput(f"{file}: is a directory; give a file name")
    from dgxcheck.source.recording.save import check_place

    try:
        check_place(file)
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


LEAST_S, MOST_S = 1, 7 * 86400
_FORM = LazyPattern(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", flags=re.ASCII)


def duration(_ctx: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """The seconds that an option asks for."""
    if value is None:
        return None
    if (seconds := parsed(value)) is None:
        raise click.BadParameter(f"{value!r} is not a time; write it as 90s, 30m, 2h or 1h30m")
    if not LEAST_S <= seconds <= MOST_S:
        raise click.BadParameter(f"{value!r} is not between 1s and {MOST_S // 3600}h")
    return seconds


def parsed(text: str) -> float | None:
    """``1h30m`` as seconds; None for what is no such time."""
    if (found := _FORM.fullmatch(text.strip())) is None or not any(found.groups()):
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(3600 * hours + 60 * minutes + seconds)
