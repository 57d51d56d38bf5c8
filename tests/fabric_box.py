"""Boxes with their reference machine, set up by hand, and with the growth of their counters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from read_box import SHIPPED, facts_in, facts_of, wired

from dgxcheck.checks.engine.box import DEFAULTS, NO_GROWTH, Box, Growth
from dgxcheck.checks.engine.finding import Finding, Judgement
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Board, Number, Profile, SelectedProfile, Selection, Wiring
from dgxcheck.settings import Settings
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import COUNTERS, Snapshot
from dgxcheck.topology.model import PciClass, Topology

Pairs = dict[PciClass, int]
MINE = ("pcie", "nvlink", "p2p", "topology", "network", "gdr")
BOARDS: Mapping[str, Board] = {
    id_: Board(id=id_, name=id_, numbers={"bar1": Number(bar1, "test"), "link_gen": Number(gen, "test")})
    for id_, bar1, gen in (
        ("10de:15f9", 16384, 3),
        ("10de:1db1", 16384, 3),
        ("10de:1db7", 32768, 3),
        ("10de:102d", 16384, 3),
        ("10de:20b0", 65536, 4),
    )
} | {"10de:1db8": Board(id="10de:1db8", name="10de:1db8", numbers={"nvlink_rate": Number(25781, "test")})}


def profile(name: str, numbers: dict[str, int], graph: str, *wiring: tuple[int, Pairs, Pairs]) -> Profile:
    return Profile(
        name=name,
        title=name,
        products=(),
        boards=(),
        numbers={key: Number(value, "test") for key, value in numbers.items()},
        nvlink_graph=graph,
        wiring=tuple(Wiring(gpus=gpus, to_gpus=to_gpus, to_hcas=to_hcas) for gpus, to_gpus, to_hcas in wiring),
        wiring_source="test",
    )


def _numbers(gpus: int, links: int, hcas: int, rate: int = 100, gen: int = 3) -> dict[str, int]:
    return {
        "gpu.count": gpus, "pcie.link_width": 16, "pcie.link_gen": gen, "nvlink.links": links, "network.hcas": hcas,
        "network.rate": rate,
    }  # fmt: skip


DGX_1: tuple[int, Pairs, Pairs] = (8, {"PIX": 1, "PHB": 2, "SOC": 4}, {"PIX": 1, "PHB": 1, "SOC": 2})
PROFILES = {
    "dgx-1-p100": profile("dgx-1-p100", _numbers(8, 4, 4), "dgx-1-p100", DGX_1),
    "dgx-1-v100": profile("dgx-1-v100", _numbers(8, 6, 4), "dgx-1-v100", DGX_1),
    "dgx-station-v100": profile(
        "dgx-station-v100", _numbers(4, 4, 0), "dgx-station-v100", (4, {"PIX": 1, "PHB": 2}, {})
    ),
    "k80-x8": profile(
        "k80-x8",
        {"gpu.count": 8, "pcie.link_width": 16, "pcie.link_gen": 3, "network.hcas": 1, "network.rate": 100},
        "",
        (4, {"PIX": 1, "PXB": 2, "SOC": 4}, {"PHB": 1}),
        (4, {"PIX": 1, "PHB": 2, "SOC": 4}, {"SOC": 1}),
    ),
    "dgx-a100": profile(
        "dgx-a100", _numbers(8, 12, 12, 200, 4), "dgx-a100", (8, {"PXB": 1, "SOC": 6}, {"PXB": 2, "SOC": 10})
    ),
    "dgx-2": profile(
        "dgx-2",
        _numbers(16, 6, 11) | {"nvlink.switches": 12},
        "dgx-2",
        (8, {"PIX": 1, "PXB": 2, "NODE": 4, "SOC": 8}, {"PIX": 1, "PXB": 1, "NODE": 3, "SOC": 6}),
        (8, {"PIX": 1, "PXB": 2, "NODE": 4, "SOC": 8}, {"PIX": 1, "PXB": 1, "NODE": 4, "SOC": 5}),
    ),
    "pcie-x4": profile(
        "pcie-x4", {"gpu.count": 4, "pcie.link_width": 16, "pcie.link_gen": 3}, "", (4, {"PIX": 1, "PHB": 2}, {})
    ),
    "pcie-x8": profile(
        "pcie-x8",
        {"gpu.count": 8, "pcie.link_width": 16, "pcie.link_gen": 3},
        "",
        (8, {"PIX": 1, "PHB": 2, "SOC": 4}, {}),
    ),
}


def box(
    spec: str,
    reference: str | Profile = "",
    how: Selection = "named",
    settings: Settings = DEFAULTS,
    seconds: float | None = None,
) -> Box:
    """The box with its counters at two times where it has a ``later``; ``seconds`` in place of the recorded time."""
    facts, topology, growth = _read_shipped(spec) if spec in SHIPPED else _read(spec)
    if isinstance(growth, Growth) and seconds is not None:
        growth = replace(growth, seconds=seconds)
    chosen = PROFILES[reference] if isinstance(reference, str) and reference else reference
    return Box(
        snapshot=facts,
        topology=topology,
        gpus=topology.gpus,
        settings=settings,
        choice=SelectedProfile(profile=chosen, how=how) if isinstance(chosen, Profile) else None,
        boards=BOARDS if chosen else {},
        growth=growth,
    )


def _read(spec: str) -> tuple[Snapshot, Topology, Growth | Judgement]:
    source = open_source(spec)
    facts = facts_of(spec) if spec in SHIPPED else facts_in(source)
    topology = wired(facts)
    later = source.later(60)
    if isinstance(later, Missing):
        return facts, topology, NO_GROWTH
    return facts, topology, Growth(old=facts, new=facts_in(later, COUNTERS), seconds=later.at_s, how="within 60 s")


_read_shipped = lru_cache(maxsize=32)(_read)


def findings(of: Box, *subjects: str) -> tuple[Finding, ...]:
    """What the checks of these subjects, or of these ids, say."""
    wanted = [check for check in CHECKS if check.id in subjects or check.id.partition(".")[0] in (subjects or MINE)]
    return run(of, wanted)


def said(of: Box, check: str, name: str = "") -> list[str]:
    """Status and reason of a check's findings, of those about ``name`` (a bdf or a name; a pair as ``a b``)."""
    told = []
    for finding in findings(of, check):
        subject, peer = finding.subject, finding.subject.peer
        names = {subject.name, subject.bdf, f"{subject.bdf} {peer.bdf if peer else subject.part}".rstrip()}
        if not name or name in names:
            told.append(" ".join([finding.status.value, finding.judgement.reason]).rstrip())
    return told


def bad(of: Box, *subjects: str) -> set[tuple[str, str | None, str]]:
    """Warnings, failures and what is not known, as ``expect`` in an overlay has them."""
    return {
        (each.id, each.subject.bdf, each.status.value)
        for each in findings(of, *subjects)
        if each.status.value in ("warn", "fail", "unknown")
    }
