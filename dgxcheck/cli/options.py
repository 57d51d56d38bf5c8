"""The options of all commands: what each takes, checks and completes to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dgxcheck import __version__
from dgxcheck.assessment.machine import DEADLINE_S
from dgxcheck.cli.results import check_place, formats
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


F = TypeVar("F", bound=Callable[..., Any])


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


def _contain(ctx: click.Context, _option: click.Parameter, root: str | None) -> None:
    if root is not None and not ctx.resilient_parsing:
        ctx.obj.contain(root)


def _choose_host(ctx: click.Context, _option: click.Parameter, host: str | None) -> None:
    if host and not ctx.resilient_parsing:
        ctx.obj.host = host


def _two_devices(ctx: click.Context, param: click.Parameter, pair: tuple[str, str] | None) -> tuple[str, str] | None:
    """click takes the next option for the second device, and then has an argument too many."""
    if pair and any(each.startswith("-") for each in pair):
        raise click.UsageError("--path takes two devices, as in --path GPU0 mlx5_0")
    return pair


def writable(ctx: click.Context, _option: click.Parameter, file: str | None) -> str | None:
    """A file that cannot be written is refused before the machine is asked, not after a burn-in."""
    if file not in (None, "-") and not ctx.resilient_parsing:
        check_place(file)
    return file


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


def _words() -> Iterable[str]:
    from dgxcheck.assessment.selection import words

    return dict.fromkeys(("score", "privileges", *words()))


def _boards() -> Iterable[str]:
    from dgxcheck.xid.table import BOARDS, NAMES

    return *BOARDS, *NAMES


def given(ctx: click.Context, *names: str) -> list[str]:
    """Those options of the names that the command line has."""
    return [name for name in names if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]


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


_MORE: Mapping[str, Mapping[str, Any]] = {
    "FILE": {"type": click.Path()}, "DIR": {"type": click.Path()}, "PROGRAM": {"type": click.Path()},
    "SECONDS": {"type": click.FloatRange, "callback": seconds}, "TIME": {"callback": duration},
    "many": {"multiple": True}, "whole": {"type": click.IntRange}, "one-word": {"metavar": "FORMAT"},
    "letters": {"metavar": "r|w|n|a|p"},
    "deadline": {"default": DEADLINE_S, "show_default": True}, "writable": {"callback": writable},
    "existing": {"type": click.Path(exists=True, file_okay=False), "show_default": False},
    "pair": {"nargs": 2, "callback": _two_devices}, "contain": {"callback": _contain, "expose_value": False},
    "host": {"callback": _choose_host, "expose_value": False}, "sources": {"shell_complete": sources},
    "profiles": {"shell_complete": profiles}, "checks": {"shell_complete": checks},
    "devices": {"shell_complete": devices}, "words": {"shell_complete": completing(_words)},
    "boards": {"shell_complete": completing(_boards)},
}  # fmt: skip
"""What an option of the table is by what its value is called, and by its other words."""


def options(command: str) -> Callable[[F], F]:
    """The options of a command by the table, in the order of its help."""
    rows = [*table("cli/options.tsv", command)]

    def decorated(function: F) -> F:
        for each in reversed(rows):
            function = _option(command, each)(function)
        return function

    return decorated


def _option(command: str, row: Mapping[str, str]) -> Callable[[F], F]:
    names, value, text = row["names"].split(), row["value"], row["help"]
    if names == ["@version"]:
        return click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
    if names[0].startswith("@"):
        return options(names[0][1:])
    if not value:
        return click.option(*names, is_flag=True, help=text)
    more: dict[str, Any] = {"metavar": value}
    if row["default"]:
        more |= {"default": row["default"], "show_default": True}
    if value == "FORMATS" or value[0] == "[":
        choices = value[1:-1].split("|") if value[0] == "[" else [*formats(command)]
        more |= {"metavar": None, "type": click.Choice(choices)}
        text = text.replace(value, ", ".join(choices))
    more |= _MORE.get(value, {})
    for word in row["more"].split():
        more |= _MORE[word]
    if row["range"]:
        limits = (float(each) if "." in each else int(each) if each else None for each in row["range"].split(".."))
        more["type"] = more.get("type", click.IntRange)(*limits)
    return click.option(*names, help=text, **more)
