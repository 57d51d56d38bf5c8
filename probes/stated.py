"""What other tools printed, as a recording that was made of their output states it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import get_args

from dgxcheck.facts.faults import BY_WORD, Fault
from dgxcheck.facts.measurement import How, Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.nvidia_smi_topo import NvidiaSmiTopo, Pair
from dgxcheck.facts.nvlink import CAPABILITIES, STATUSES
from dgxcheck.facts.tool_report import Outcome, ToolReport
from dgxcheck.source.protocol import Source

MOST_DEVICES = 512
LABELS = ("PIX", "PXB", "PHB", "NODE", "SOC", "SYS")
_GAPS = {gap.value: gap for gap in Gap}
_P2P = {f"p2p-{name}": name for name in CAPABILITIES} | {"p2p": ""}
_MATRICES = ("label", "label-pci", *_P2P)


def stated(source: Source) -> NvidiaSmiTopo | Missing:
    """Everything under ``stated``; a label that makes no sense is ``garbled``."""
    facts = source.stated()
    if isinstance(facts, Missing):
        return facts
    pairs: dict[str, dict[Pair, str | Missing]] = {}
    texts: dict[str, dict[str, str]] = {}
    names: dict[str, None] = {}
    links: Counter[str] = Counter()
    for key, fact in facts.items():
        _, kind, a, b, *_ = [*key.split(" "), "", ""]
        if kind in _MATRICES:
            names |= dict.fromkeys((a, b))
            if a != b:
                read = _label if kind.startswith("label") else _status
                pairs.setdefault(kind, {})[a, b] = read(key, fact)
        elif kind in ("nvlink", "nvlink-remote"):
            names[a] = None
            links[a] += kind == "nvlink" and b != ""
        elif isinstance(fact, str):
            texts.setdefault(kind, {})[a] = fact
    names.pop("", None)
    if not (names or texts):
        return Missing(Gap.UNRECORDED, "stated", "no output of nvidia-smi topo")
    if len(names) > MOST_DEVICES:
        return Missing(Gap.GARBLED, "stated", f"{len(names)} devices: no matrix has as many")
    return NvidiaSmiTopo(
        names=tuple(sorted(names, key=_order)),
        labels=pairs.get("label", {}),
        pci_labels=pairs.get("label-pci", {}),
        cpu_affinity=texts.get("cpu-affinity", {}),
        numa_affinity=texts.get("numa-affinity", {}),
        gpu_numa_id=texts.get("gpu-numa-id", {}),
        nic_names=texts.get("nic-name", {}),
        nvlinks=links,
        p2p={name: _known(pairs[kind]) for kind, name in _P2P.items() if kind in pairs},
    )


def _known(statuses: Mapping[Pair, str | Missing]) -> dict[Pair, str]:
    return {pair: status for pair, status in statuses.items() if isinstance(status, str)}


def _label(key: str, fact: Json) -> str | Missing:
    if isinstance(fact, str):
        links = fact[2:]
        if fact in LABELS:
            return "SOC" if fact == "SYS" else fact
        if fact[:2] == "NV" and links.isascii() and links.isdecimal() and len(links) < 4 and int(links):
            return f"NV{int(links)}"
    return _gap(key, fact)


def _status(key: str, fact: Json) -> str | Missing:
    return fact if isinstance(fact, str) and fact in STATUSES else _gap(key, fact)


def _gap(key: str, fact: Json) -> Missing:
    if isinstance(fact, dict) and isinstance(gap := fact.get("missing"), str):
        return Missing(_GAPS.get(gap, Gap.GARBLED), key, str(fact.get("detail", ""))[:80])
    return Missing(Gap.GARBLED, key, f"unexpected: {str(fact)[:80]}")


def _order(name: str) -> tuple[bool, int, str, int, str]:
    """GPUs first, in bus order or by number; then NICs: ``mlx5_2`` before ``mlx5_10``."""
    if ":" in name:
        return False, len(name), "", 0, name
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem != "GPU", 0, stem, int(digits) if digits.isascii() and 0 < len(digits) < 10 else -1, name


MOST = 1e15
"""No figure of any kind is larger: bytes checked in a day at 10 TB/s."""
MOST_SAMPLES = 256

_HOWS: dict[str, How] = {how: how for how in get_args(How)}
_OWN = ("value", "unit", "method", "tool", "how", "samples", "runs")


def measurement(source: Source) -> tuple[Measurement, ...] | Missing:
    """Every measurement, in the order of its key."""
    facts = source.measured()
    if isinstance(facts, Missing):
        return facts
    return tuple(_measurement(key, fact) for key, fact in sorted(facts.items()))


def _measurement(key: str, fact: Json) -> Measurement:
    _, kind, a, *rest = [*key.split(" "), "", ""]
    members: dict[str, Json] = fact if isinstance(fact, dict) else {}
    return Measurement(
        kind=kind,
        a=a,
        b=" ".join(filter(None, rest)),
        value=_value(key, fact),
        unit=_text(members, "unit"),
        method=_text(members, "method"),
        tool=_text(members, "tool"),
        how=_HOWS.get(_text(members, "how"), "imported"),
        samples=_numbers(members.get("samples")),
        runs=_runs(members.get("runs")),
        more={name: value for name, value in members.items() if name not in _OWN},
    )


def _value(key: str, fact: Json) -> int | float | bool | Missing | NotMeasured | None:
    if not isinstance(fact, dict):
        return Missing(Gap.GARBLED, key, "no object in the recording")
    if "missing" in fact:
        gap = _GAPS.get(_text(fact, "missing"), Gap.GARBLED)
        return Missing(gap, key, _text(fact, "detail"))
    code = fact.get("code")
    code = code if isinstance(code, int) else None
    if "skipped" in fact:
        return NotMeasured(_text(fact, "skipped"), _text(fact, "detail"), code)
    if "failed" in fact:
        return NotMeasured("failed", _text(fact, "detail"), code, _text(fact, "failed"))
    value = fact.get("value")
    if value is None and "value" in fact:
        return None
    if isinstance(value, int | float) and abs(value) <= MOST:
        return value
    return Missing(Gap.GARBLED, key, "no figure in the recording")


def _text(members: dict[str, Json], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _numbers(value: Json) -> tuple[float, ...]:
    found = value[:MOST_SAMPLES] if isinstance(value, list) else []
    return tuple(float(each) for each in found if isinstance(each, int | float) and abs(each) <= MOST)


def _runs(value: Json) -> tuple[float, ...]:
    """Of ``[{"value": .., "from": ..}, ..]`` the values."""
    found = value if isinstance(value, list) else []
    return _numbers([each.get("value") if isinstance(each, dict) else None for each in found])


KIND = "report"
_MOST_TEXT = 240
_OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


def tool_reports(source: Source) -> tuple[ToolReport, ...] | Missing:
    """Everything under ``stated report SUBJECT TOPIC``; a result that is none of the known ones is left out."""
    facts = source.stated()
    if isinstance(facts, Missing):
        return facts
    found = [_report(key.split(" "), fact) for key, fact in sorted(facts.items()) if key.split(" ")[1:2] == [KIND]]
    return tuple(report for report in found if report is not None)


def _report(words: list[str], fact: Json) -> ToolReport | None:
    outcome = _OUTCOMES.get(str(fact.get("outcome"))) if isinstance(fact, dict) else None
    if outcome is None or not isinstance(fact, dict) or len(words) < 4:
        return None
    count, word, text = fact.get("count"), _text(fact, "fault")[:_MOST_TEXT], _text(fact, "text")[:_MOST_TEXT]
    known = not word or word in BY_WORD
    return ToolReport(
        subject=words[2],
        tool=_text(fact, "tool")[:_MOST_TEXT],
        topic=" ".join(words[3:]),
        outcome=outcome,
        fault=BY_WORD.get(word) if known else Fault.TEST_FAILED,
        text=text if known else f"unknown fault {word}: {text}"[:_MOST_TEXT],
        count=count if isinstance(count, int) and 0 < count < 10**9 else 1,
    )
