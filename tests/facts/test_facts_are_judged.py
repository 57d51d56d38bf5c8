"""A fact that no check, difference or score reads is a fault that nobody finds: such facts stand here, with reasons."""

from __future__ import annotations

import ast
from collections import Counter
from math import inf

from checkout import ROOT
from sample import BY_NAME
from traced_reads import traced

from dgxcheck.assessment import assess
from dgxcheck.assessment.compare import side_of
from dgxcheck.assessment.health import within
from dgxcheck.assessment.machine import topology_of
from dgxcheck.assessment.request import Request
from dgxcheck.checks.by_nature.last_run import kept
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.difference.compare import compare
from dgxcheck.facts import host, infiniband, memory, pci
from dgxcheck.facts.inventory import Remembered
from dgxcheck.facts.nature import rows_of
from dgxcheck.facts.nvml import gpu, nvlink, readings
from dgxcheck.facts.record import Record, fields
from dgxcheck.profiles.library import boards_for
from dgxcheck.score.box import score_of
from dgxcheck.source.recording.load import open_source

MODULES = (gpu, readings, host, memory, infiniband, nvlink, pci)
RECORDS = [
    each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Record) and each.__module__ == module.__name__
]
ROOMS = ("checks", "difference", "score", "diagnosis", "components", "readiness", "topology", "xid")
GENERIC = ("components/device_facts.py", "engine/gaps.py", "facts/record.py")
"""Code that walks all fields: whether there is an answer, not which."""
BOXES = ("dgx-1-v100", "dgx-a100", "k80-x8", "dgx-1-v100-iommu-dma", "dgx-a100-fabric-manager-down")


def _all(reason: str, *facts: str) -> dict[str, str]:
    return dict.fromkeys(facts, reason)


UNJUDGED = {
    **_all("for dgxcheck topo, which prints it", "GpuAffinity.cpulist", "GpuAffinity.memory_nodes"),
    **_all("which functions are one adapter: the topology follows it", "Vpd.bdf", "Vpd.uuid"),
    **_all("identity", "CpuPolicy.name", "RetiredPage.address"),
    **_all("the mask of the same record, by name", "EventReasons.active"),
    **_all("names the place of a part, for who replaces it", "GpuBoard.module_id", "GpuBoard.chassis_slot",
           "GpuBoard.tray"),
    **_all("time stamp of a counter", "GpuCounters.clock_us"),
    **_all("use by programs", "GpuMemory.free", "GpuPcie.bar1_free",
           "GpuProcess.used_memory", "GpuProcess.name", "GpuActivity.memory_percent"),
    **_all("a display may be connected", "GpuModes.display_mode"),
    **_all("evidence and words for people", "JobDaemon.name", "Setting.path", "Setting.line"),
    **_all("host.last-run and fleet --history read them; no shipped board has an SMBIOS table", "Dimm.maker",
           "Dimm.model", "Dimm.serial", "Dimm.size_mib"),
    **_all("driver.fabric and driver.fabric-health read it; no shipped board has it", "Fabric.state"),
}  # fmt: skip


def test_every_fact_is_read_by_a_check_a_difference_or_a_score_or_stands_here() -> None:
    """Read while boxes are judged, or named in the code, if no other record has a field of that name."""
    read, named = _read(), _named()
    shared = {
        name for name, count in Counter(each for record in RECORDS for each in fields(record)).items() if count > 1
    }
    unjudged = {
        f"{record.__name__}.{field}"
        for record in RECORDS
        for field in fields(record)
        if (record.__name__, field) not in read
        and (field not in named or field in shared)
        and "most" not in rows_of(record)[field].more
    }
    assert unjudged - UNJUDGED.keys() == set(), "judge them, or say why not"
    assert {fact for fact in UNJUDGED if tuple(fact.split(".")) in read} == set(), "these are judged"


def _read() -> set[tuple[str, str]]:
    """Record and field of every access while what ships is judged and compared."""
    read: set[tuple[str, str]] = set()

    def heard(record: object, name: str, file: str) -> None:
        if not file.endswith(GENERIC):
            read.add((type(record).__name__, name))

    for name in BOXES:
        judged = assess(name, Request(profile="k80-x8" if name.startswith("k80-x8") else "auto"))
        box = Box(
            snapshot=judged.snapshot, topology=judged.topology, gpus=judged.topology.gpus, settings=judged.settings,
            choice=judged.choice, boards=boards_for(judged.choice),
            growth=within(open_source(BY_NAME[name]), judged.snapshot, inf),
            kept=Remembered("", "2026-11-20", kept(judged.snapshot)),
        )  # fmt: skip
        side = side_of(open_source(BY_NAME[name]))
        with traced(heard):
            topology_of(box.snapshot)
            run(box, CHECKS)
            score_of(box, judged.diagnosis.causes, judged.findings)
            compare(side, side)
    return read


def _named() -> set[str]:
    """Names of attributes, and identifiers in strings, in the rooms that judge."""
    names: set[str] = set()
    for room in ROOMS:
        for path in (ROOT / "dgxcheck" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    names.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.add(node.value)
    return names
