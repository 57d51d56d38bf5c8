"""systemd units that can keep GPUs open, or that start jobs: which run, and which are enabled."""

from __future__ import annotations

from dgxcheck.facts.host import Unit
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.source.protocol import Source

WATCHED = (
    "nvidia-persistenced", "nvidia-dcgm", "dcgm", "dcgm-exporter", "nvidia-dcgm-exporter", "nvidia_gpu_exporter",
    "nvsm", "nvsm-core", "nvsm-mqtt", "nvsm-api-gateway", "nvidia-fabricmanager", "nvidia-imex", "display-manager",
    "gdm", "gdm3", "lightdm", "sddm", "slurmd", "pbs", "kubelet",
)  # fmt: skip
_GROUPS = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
"""Of cgroup v2, and of v1."""
_ALWAYS = "systemd-journald.service"
"""Runs wherever systemd does: without its group the groups of the host are not seen from here."""
_ENABLED = "/etc/systemd/system"
_TARGETS = ("multi-user.target.wants", "graphical.target.wants")


def probe(source: Source) -> tuple[Unit, ...]:
    """A unit runs while it has a control group (systemd.resource-control(5)); it is enabled where a target wants it.

    Each unit is asked for by its name, so that a recording holds the names of no others.
    """
    seen = any(not isinstance(source.names(f"{group}/{_ALWAYS}"), Missing) for group in _GROUPS)
    return tuple(Unit(name=name, running=_runs(source, name, seen), enabled=_enabled(source, name)) for name in WATCHED)


def _runs(source: Source, name: str, seen: bool) -> bool | Missing:
    if not seen:
        return Missing(Gap.UNRECORDED, _GROUPS[0], "control groups of the host not seen")
    return any(not isinstance(source.names(f"{group}/{name}.service"), Missing) for group in _GROUPS)


def _enabled(source: Source, name: str) -> bool | Missing:
    answers = [source.link(f"{_ENABLED}/{target}/{name}.service") for target in _TARGETS]
    if any(not isinstance(answer, Missing) for answer in answers):
        return True
    gaps = [answer for answer in answers if isinstance(answer, Missing) and answer.gap is not Gap.ABSENT]
    return gaps[0] if gaps else False
