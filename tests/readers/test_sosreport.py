"""A sosreport with all that its plug-ins ask for: several dumps of one GPU, and each event in four logs.

Names of files: https://github.com/sosreport/sos, plug-ins nvidia, infiniband, pci, kernel and logs.
"""

from __future__ import annotations

import lzma
import time
from pathlib import Path

import pytest
from report_writer import LINE, sections
from test_bundle_files import put
from test_import_bundles import outputs, tarred

from dgxcheck.assessment import Assessment, Request, assess
from dgxcheck.assessment.importing.bundle import opened
from dgxcheck.source.recording.load import open_source

BAD = ("warn", "fail", "unknown")
TOP = "sosreport-gpu01-2026-11-23-abcdefg"
XID = "NVRM: Xid (PCI:0000:0a:00): 79, pid=4242, GPU has fallen off the bus."
LOADS = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05"
FIRST = "Linux version 5.4.0-generic"


def dated(boot: int, rows: dict[float, str], with_seconds: bool = False) -> str:
    """As journald and rsyslog write them; the boots are a day apart."""
    begun = 1_790_000_000 + 86_400 * boot
    stamps = {at: time.strftime("%b %d %H:%M:%S", time.gmtime(begun + at)) for at in rows}
    own = {at: f"[{at:12.6f}] " if with_seconds else "" for at in rows}
    return "".join(f"{stamps[at]} gpu01 kernel: {own[at]}{message}\n" for at, message in rows.items())


def dmesg(rows: dict[float, str]) -> str:
    return "".join(f"[{at:12.6f}] {message}\n" for at, message in rows.items())


def sosreport(box: str, folder: Path, **more: str) -> str:
    found = {name.replace("/x/", "/pci/"): data for name, data in outputs(box).items()}
    smi = found.pop("sos_commands/nvidia/nvidia-smi_--query").decode()
    found["sos_commands/nvidia/nvidia-smi_-q"] = smi.encode()
    hotter = smi.replace("GPU Current Temp                      : 3", "GPU Current Temp                      : 4")
    for kind in ("ECC", "PERFORMANCE", "PAGE_RETIREMENT"):
        found[f"sos_commands/nvidia/nvidia-smi_-q_-d_{kind}"] = hotter.encode()
    found |= {name: text.encode() for name, text in more.items()}
    return put(folder, {f"{TOP}.tar.xz": lzma.compress(tarred(TOP, found))}) + f"/{TOP}.tar.xz"


def bad(assessment: Assessment) -> set[tuple[str, str]]:
    return {(each.id, each.subject.bdf or "") for each in assessment.findings if each.status.value in BAD}


@pytest.mark.parametrize("box", ["dgx-1-v100", "dgx-1-v100-nvlink-down"])
def test_dumps_of_one_gpu_do_not_contradict_each_other(box: str, tmp_path: Path) -> None:
    found = assess(sosreport(box, tmp_path), Request())
    assert bad(found) == bad(assess(box, Request()))
    assert found.origin.note == ""


NOW = {0.0: FIRST, 4.25: LOADS, 900.5: XID}
BEFORE = {0.0: FIRST, 4.1: LOADS, 50.0: "NVRM: GPU 0000:86:00.0: GPU has fallen off the bus."}
LOGS = {
    "sos_commands/kernel/dmesg": dmesg(NOW),
    "sos_commands/logs/journalctl_--no-pager_--boot": dated(1, NOW),
    "sos_commands/logs/journalctl_--no-pager_--boot_-1": dated(0, BEFORE),
    "sos_commands/logs/journalctl_--no-pager": dated(0, BEFORE) + dated(1, NOW),
    "var/log/messages": dated(0, BEFORE) + dated(1, NOW),
    "var/log/kern.log": dated(0, BEFORE, with_seconds=True) + dated(1, NOW, with_seconds=True),
}


@pytest.mark.parametrize(
    "names",
    [
        tuple(LOGS),
        ("sos_commands/kernel/dmesg", "sos_commands/logs/journalctl_--no-pager_--boot"),
        ("sos_commands/kernel/dmesg", "sos_commands/logs/journalctl_--no-pager"),
        ("sos_commands/kernel/dmesg", "var/log/messages"),
        ("sos_commands/kernel/dmesg", "var/log/kern.log"),
        ("sos_commands/logs/journalctl_--no-pager_--boot", "sos_commands/logs/journalctl_--no-pager_--boot_-1"),
    ],
)
def test_each_event_counts_once_and_in_its_boot(names: tuple[str, ...], tmp_path: Path) -> None:
    facts = opened(put(tmp_path, {f"{TOP}/{name}": LOGS[name].encode() for name in names})).facts
    log = [str(fact) for key, fact in facts.items() if key.startswith("kmsg ")]
    earlier = [line for line in log if "earlier: boot" in line]
    assert sum(XID in line for line in log) == 1
    assert not any(XID in line for line in earlier)
    if len(names) > 2 or names[1] != "sos_commands/logs/journalctl_--no-pager_--boot":
        assert sum("0000:86:00.0" in line for line in earlier) == 1
        assert sum("0000:86:00.0" in line for line in log) == 1


def test_a_report_of_a_node_of_kubernetes(tmp_path: Path) -> None:
    """must-gather.sh of the GPU operator names reports after nodes and adds sections behind their end."""
    every = sections(open_source("dgx-1-v100"), old=False)
    lspci, dmi = (next(each for each in every if f"\n\n{title}" in each) for title in
                  ("/usr/bin/lspci -nnDvvvxxxx", "/sbin/dmidecode"))  # fmt: skip
    kept = [each for each in every if not any(word in each.splitlines()[2] for word in ("lspci", "dmidecode"))]
    more = "output (via must-gather extended diagnostics)\n"
    text = "".join((
        *kept, f"\n{LINE}\n\n*** EXTENDED DIAGNOSTICS (from debug container) ***\n\n",
        dmi.replace("/sbin/dmidecode\n", f"dmidecode  {more}"),
        lspci.replace("/usr/bin/lspci -nnDvvvxxxx\n", f"lspci -vvvxxxx {more}"),
    ))  # fmt: skip
    files = {f"nvidia-bug-report_worker-{node}.log": text.encode() for node in range(2)}
    pods = {"gpu_nodes.labels": b"worker-0\n", "gpu_operator_pod.log": b"{}\n"}
    spec = put(tmp_path, files | pods)
    found = opened(spec, "worker-1")
    assert {output.found.tool.partition(" ")[0] for output in found.outputs} >= {"lspci", "dmidecode", "nvidia-smi"}
    assert found.unowned == tuple(sorted(pods))
