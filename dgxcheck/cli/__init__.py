"""The command line: one file per command, each imported when it is called."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from importlib import import_module

import click

from dgxcheck import __version__
from dgxcheck.assessment.machine import LiveMachine
from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.workers.nvml.supervisor import NvmlStage

_UNWRITABLE = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)
_OPTIONAL = LazyPattern(r"^(Invalid value for )'\[([A-Z]{1,40})\]'")
"""An argument that may be left out, as click names it; what the user typed stands behind it and is left as it is."""
_IN_ASCII = {"│": "|", "├": "|", "└": "`", "─": "-", "°": "", "µ": "u", "×": "x"}
INCOMPLETE = 3
"""Exit code: printed, but not everything asked was answered; or it could not run."""

_ROWS = {row["name"]: row for row in table("cli/commands.tsv")}
COMMANDS = {name: row["about"] for name, row in _ROWS.items() if " " not in name}
SUBCOMMANDS = {name: row["about"] for name, row in _ROWS.items() if " " in name}
"""Commands of two words, of which the first is a command of its own."""


class CommandGroup(click.Group):
    """Knows its commands by name and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ROWS:
            return None
        command: click.Command = import_module(f"dgxcheck.cli.commands.{_ROWS[cmd_name]['module']}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, row["about"]) for name, row in _ROWS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            if " ".join(args[:2]) in SUBCOMMANDS:
                args = [" ".join(args[:2]), *args[2:]]
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            valid = f"valid commands: {', '.join(COMMANDS)}"
            hint = "each command has -h" if args[0] == "help" else did_you_mean(args[0], COMMANDS, valid)
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx) from error


@click.command(cls=CommandGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def dgxcheck(ctx: click.Context) -> None:
    """Show the topology of an NVIDIA multi-GPU box, check its health, and compare it with its reference machine."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _drawn(error: UnicodeError) -> tuple[str, int]:
    """What a terminal that is not UTF-8 shows of a text: a tree as ``pstree -A`` draws it, ? for what it cannot."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unshown = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(character, "?") for character in unshown), error.end


def main(argv: list[str], stage: NvmlStage | None = None, root: str = "/") -> int:
    """Run one command line; its exit code. ``stage`` is NVML asked early, ``root`` where the machine's files are."""
    machine = LiveMachine(root, stage)
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("drawn", _drawn)
        sys.stdout.reconfigure(errors="drawn")
    try:
        code = dgxcheck.main(args=argv, prog_name="dgxcheck", standalone_mode=False, obj=machine)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except SystemExit as stop:  # of click, once it has printed a completion
        return INCOMPLETE if stop.code else 0
    except click.ClickException as error:
        return _refuse(_worded(error) if isinstance(error, click.UsageError) else error.format_message())
    except BadInput as error:
        return _refuse(str(error))
    except (click.Abort, KeyboardInterrupt):
        return _refuse("interrupted")
    except BrokenPipeError:
        # the reader has gone (head); what is still buffered has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return INCOMPLETE
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            return _internal(error)
        return _refuse(f"stdout: cannot be written: {error.strerror}")  # click's own texts: --help, --version
    except Exception as error:  # noqa: BLE001 -- whatever it is, an admin gets one line and the exit code that says so
        return _internal(error)
    finally:
        machine.close()


def _worded(error: click.UsageError) -> str:
    """A wrong command line as all other messages are worded: no capital, no full stop; which command explains more."""
    where = f"; see '{error.ctx.command_path} -h'" if error.ctx is not None else ""
    if isinstance(error, click.NoSuchOption):
        near = did_you_mean(error.option_name, error.possibilities or (), "")
        return f"no option {error.option_name}{f'; {near}' if near else where}"
    text = _OPTIONAL.sub(r"\1'\2'", error.format_message().rstrip("."), count=1)
    return f"{text[:1].lower() if text[1:2].islower() else text[:1]}{text[1:]}{where}"


def _internal(error: Exception) -> int:
    return _refuse(f"internal error, please report it: {_place(error)}: {type(error).__name__}: {error}")


def _refuse(message: str) -> int:
    from dgxcheck.output.plain_text import visible

    print(f"dgxcheck: {visible(' '.join(message.split()))}", file=sys.stderr)
    return INCOMPLETE


def _place(error: Exception) -> str:
    """File and line in which an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace is not None else "?"
