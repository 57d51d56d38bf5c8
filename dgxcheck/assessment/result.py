"""All that is known of a machine after it was judged."""

from __future__ import annotations

from dgxcheck.facts.record import Record, remembered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dgxcheck.assessment.host_use import HostLoad, Program
    from dgxcheck.assessment.request import Level
    from dgxcheck.checks.engine.finding import Finding, Status
    from dgxcheck.diagnosis.model import Cause, Diagnosis
    from dgxcheck.facts.missing import Missing
    from dgxcheck.profiles.model import Profile, SelectedProfile
    from dgxcheck.readiness.figures import Figure
    from dgxcheck.score.expectation import Score
    from dgxcheck.settings import Acknowledgement, Settings
    from dgxcheck.source.protocol import Origin
    from dgxcheck.survey import Snapshot
    from dgxcheck.topology.model import Topology


class Assessment(Record):
    """The facts of one machine, what they were judged by, and what was found."""

    origin: Origin
    """Where the facts come from: the live machine, a directory or a recording."""
    snapshot: Snapshot
    topology: Topology
    level: Level
    settings: Settings
    """What the site configured."""
    choice: SelectedProfile | None
    """The reference machine and how it was chosen; None without one."""
    findings: tuple[Finding, ...]
    """One per check and subject, in the order of the checks; those that passed or were skipped too."""
    verdict: Status
    """The worst status; UNKNOWN if too few checks could be judged."""
    diagnosis: Diagnosis
    score: Score | None
    """None without a reference machine; its ``total`` is None where too little could be read."""
    figures: tuple[Figure, ...]
    """What was measured under load."""
    host: Mapping[str, str | Missing]
    """``host``, the name, and ``boot_id``."""
    seconds: float
    """How long asking and judging took."""
    programs: tuple[Program, ...] = ()
    """The processes on the GPUs of a live machine."""
    host_load: HostLoad | Missing | None = None
    """The host while the GPUs were under load; None if they were not, Missing without psutil."""
    unmatched: tuple[Acknowledgement, ...] = ()
    """Acknowledgements whose device is not in this machine."""

    @property
    def found(self) -> Mapping[str, Finding]:
        """The findings by key."""
        return _by_key(self)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Components to blame, the worst first, each with the keys of the findings that it explains."""
        return self.diagnosis.causes

    @property
    def unexplained(self) -> tuple[Finding, ...]:
        """Bad findings that no cause explains."""
        return tuple(finding for key, finding in self.found.items() if key in self.diagnosis.unexplained)

    def explained(self, cause: Cause) -> tuple[Finding, ...]:
        """The findings that a cause explains, the worst first."""
        return tuple(self.found[key] for key in cause.explains)

    @property
    def profile(self) -> Profile | None:
        """The reference machine; None without one."""
        return None if self.choice is None else self.choice.profile


@remembered(1)
def _by_key(assessment: Assessment) -> Mapping[str, Finding]:
    return {finding.key: finding for finding in assessment.findings}
