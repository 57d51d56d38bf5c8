"""What is asked of an assessment: every option that changes what is judged, and nothing about how it is shown."""

from __future__ import annotations

from typing import Literal

from dgxcheck.assessment.machine import DEADLINE_S
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.settings import Settings

Level = Literal["quick", "default", "extended"]
"""How much is looked at: state read once; also counter growth, the kernel log and all that is slower; also measurements
under load, of a live machine alone."""
QUICK_DEADLINE_S = 28.0
"""Node health checkers allow 30 s."""
WINDOW_S = 10.0
"""Between two readings of the counters after measurements, if no earlier run gives a longer time."""


class Request(Record):
    """What to judge, and by what. Fields are named after the long options of ``dgxcheck health``.

    A request that contradicts itself is refused by ``assess`` with ``BadInput``; its message names those options.
    """

    level: Level = "default"
    gpus: tuple[str, ...] = ()
    """Only these GPUs, each by index, bus id or UUID; empty: all of them."""
    profile: str = "auto"
    """The reference machine: the name of a shipped profile, a TOML file, ``auto`` or ``none``."""
    only: tuple[str, ...] = ()
    """Only these checks, by id (``ecc.mode``) or subject (``ecc``); empty: all of them."""
    skip: tuple[str, ...] = ()
    """All but these checks."""
    require: tuple[str, ...] = ()
    """Checks that must be judged: one that skips counts as unknown."""
    window: float | None = None
    """Seconds between two readings of the counters in this run; None: compare with the state file of an earlier run, or
    with the later moment of a recording."""
    state: str | None = None
    """Path of the state file; None: the usual one in the state directory. Only a live machine has one."""
    baseline: str | None = None
    """An earlier recording of this machine, as ``--from`` names it, to compare with."""
    kernel_log: str | None = None
    """A saved dmesg, ``journalctl -k`` or /dev/kmsg, judged in place of the source's kernel log."""
    config: str | None = None
    """The site's configuration file; None: ``$DGXCHECK_CONFIG``, else /etc/dgxcheck/config.toml, if it exists."""
    settings: Settings | None = None
    """The site's settings, in place of those of a file."""
    deadline: float | None = None
    """Most seconds for all that asks a driver; None: 60, or 28 at the level quick."""
    test_seconds: float = 120.0
    """Most seconds for one test, 0 for no limit. It bounds the deadline too."""
    duration: float | None = None
    """Seconds of burn-in after the measurements; it implies the level extended."""
    long: bool = False
    """Measure with larger copies and all free memory."""

    @property
    def driver_deadline(self) -> float:
        """Most seconds for all that asks a driver: no test takes longer than that, so ``test_seconds`` bounds it."""
        usual = QUICK_DEADLINE_S if self.level == "quick" else DEADLINE_S
        deadline = usual if self.deadline is None else self.deadline
        return min(deadline, max(1.0, self.test_seconds or deadline))

    @property
    def measures(self) -> bool:
        """Is a live machine put under load?"""
        return self.level == "extended" or self.duration is not None


DEFAULT = Request()


def validate(request: Request, live: bool) -> None:
    """BadInput if the request contradicts itself, or asks of a recording what only a live machine can do."""
    quick = request.level == "quick"
    if request.duration is not None:
        for given, option in ((quick, "-q"), (not live, "--from"), (request.window, "--window"),
                              (request.state, "--state"), (request.kernel_log, "--kernel-log")):  # fmt: skip
            if given:
                raise BadInput(f"--duration puts load on this machine; it cannot be combined with {option}")
    if quick and (request.window is not None or request.state is not None):
        raise BadInput("-q reads the state only once; it cannot be combined with -e, --window or --state")
    if request.state is not None and not live:
        raise BadInput("--state is of the running machine; it cannot be combined with --from")
    if request.long and not request.measures:
        raise BadInput("--long requires -e")
    for seconds, least, option in ((request.window, 0.1, "--window"), (request.deadline, 1.0, "--deadline"),
                                   (request.test_seconds, 0.0, "--test-seconds"),
                                   (request.duration, 1.0, "--duration")):  # fmt: skip
        if seconds is not None and not seconds >= least:  # nan is neither below nor above any limit
            raise BadInput(f"{option} {seconds:g}: at least {least:g} s")
    if request.config is not None and request.settings is not None:
        raise BadInput("settings replace the configuration file; give one of the two")
