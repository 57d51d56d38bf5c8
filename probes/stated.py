"""The matrices that nvidia-smi topo printed, as a recording that was made of its output states them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.missing import GAPS_BY_VALUE, Gap, Json, Missing
from dgxcheck.facts.nvml.nvlink import CAPABILITIES, STATUSES
from dgxcheck.facts.tool_outputs import NvidiaSmiTopo
from dgxcheck.source.protocol import Source

MOST_DEVICES = 512
LABELS = ("PIX", "PXB", "PHB", "NODE", "SOC", "SYS")
_P2P = {f"p2p-{name}": name for name in CAPABILITIES} | {"p2p": ""}
_TEXTS = {"cpu_affinity": "cpu-affinity", "numa_affinity": "numa-affinity", "gpu_numa_id": "gpu-numa-id",
          "nic_names": "nic-name"}  # fmt: skip
_MATRICES = ("label", "label-pci", *_P2P)


def stated(source: Source) -> NvidiaSmiTopo | Missing:
    """Everything under ``stated``; a label that makes no sense is ``garbled``."""
    if isinstance(facts := source.stated(), Missing):
        return facts
    pairs: dict[str, dict[IdPair, str | Missing]] = {}
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
        nvlinks=links,
        **{field: texts.get(kind, {}) for field, kind in _TEXTS.items()},
        p2p={name: _known(pairs[kind]) for kind, name in _P2P.items() if kind in pairs},
    )


def _known(statuses: Mapping[IdPair, str | Missing]) -> dict[IdPair, str]:
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
        return Missing(GAPS_BY_VALUE.get(gap, Gap.GARBLED), key, str(fact.get("detail", ""))[:80])
    return Missing(Gap.GARBLED, key, f"unexpected: {str(fact)[:80]}")


def _order(name: str) -> tuple[bool, int, str, int, str]:
    """GPUs first, in bus order or by number; then NICs: ``mlx5_2`` before ``mlx5_10``."""
    if ":" in name:
        return False, len(name), "", 0, name
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem != "GPU", 0, stem, int(digits) if digits.isascii() and 0 < len(digits) < 10 else -1, name
