"""Results of other tools become findings of the device that they name, with the fault that they stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from read_box import box
from sample import swept
from seam import run

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.run import run as run_checks
from dgxcheck.checks.imported_reports import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import IbDevicePorts
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.tool_outputs import CONFIGURED, NOT_STARTED, OF_INTERFACES, OF_SERVICE, Outcome, ToolReport
from dgxcheck.output.health.for_programs import as_json
from dgxcheck.output.report import HealthReport

LOG = "box:1:2 [{gpu}] {file} NCCL WARN {text}\n"
ECC = LOG.format(gpu=3, file="enqueue.cc:9", text="Cuda failure 'uncorrectable ECC error encountered'")
LOST = LOG.format(gpu=0, file="transport/net_ib.cc:9", text="NET/IB : Got completion with error 12, opcode 1")
PERFTEST = " Completion with error at client\n Failed status 4: wr_id 0 syndrom 0x51\nscnt=128, ccnt=0\n"
PASSED = "| GPU Memory | Pass - All |\n| PCIe | Pass - All |\n"
FAILED = "| GPU Memory | Fail - GPU: 3 |\n| Warning | GPU 3 row remappings are pending |\n"


@pytest.fixture
def judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def judge(text: str, *onto: str, only: tuple[str, ...] = ("tools.reports",)) -> Any:
        (tmp_path / "text").write_text(text)
        run(capsys, "import", str(tmp_path / "text"), *onto, "-o", str(tmp_path / "box.json"))
        judged = assess(str(tmp_path / "box.json"), Request(only=only))
        document = json.loads(as_json.render(HealthReport(assessment=judged, exit_code=0)))
        return document["findings"], document["causes"]

    return judge


@pytest.mark.parametrize(
    ("text", "status", "fault", "subject", "blamed"),
    [
        (ECC, "fail", "ecc-uncorrected", "GPU3", ("gpu", "GPU3", "memory")),
        (LOST, "fail", "transfer-unanswered", "host", ("host", "host", "path to other hosts")),
        (LOST.replace("error 12", "error 5"), "warn", "transfer-failed", "host",
         ("host", "host", "transfers to other hosts")),
        (LOST.replace("error 12", "error 4"), "fail", "rdma-access", "host", ("host", "host", "GPUDirect RDMA")),
        (LOST.replace("Got completion with error 12", "mlx5_2:1 Got async event : port error"), "warn", "port-down",
         "mlx5_2/1", ("port", "mlx5_2/1", "")),
        (PERFTEST, "fail", "rdma-access", "host", ("host", "host", "GPUDirect RDMA")),
        (PERFTEST.replace("status 4", "status 12"), "fail", "transfer-unanswered", "host",
         ("host", "host", "path to other hosts")),
        ("1 | 11/20/2026 | 02:11:09 | Memory DIMM_C1 | Uncorrectable ECC | Asserted", "warn", "dimm-errors", "host",
         ("host", "host", "memory")),
        ("1 | 11/20/2026 | 02:11:09 | Critical Interrupt #0x90 | Bus Fatal Error | Asserted", "warn",
         "aer-uncorrectable", "host", ("host", "host", "PCIe links")),
        ("1 | 11/20/2026 | 02:11:09 | Temperature INLET | Upper Critical going high | Asserted", "warn", "overheating",
         "host", ("host", "host", "cooling")),
        ("REASON  USER  TIMESTAMP  NODELIST\nGPU uncorrectable ECC errors  root  2026-11-20T02:11:09  dgx017", "warn",
         "ecc-uncorrected", "unnamed GPU", ("gpu", "unnamed GPU", "memory")),
        ("ERROR:  nhc:  Health check failed:  check_hw_edac:  ECC errors detected - 31 corrected memory errors", "fail",
         "dimm-errors", "host", ("host", "host", "memory")),
        (FAILED, "fail", "remap-pending", "GPU3", ("gpu", "GPU3", "memory")),
    ],
)  # fmt: skip
def test_a_bad_result(text: str, status: str, fault: str, subject: str, blamed: tuple[str, ...], judged: Any) -> None:
    (finding,), causes = judged(text)
    assert (finding["status"], finding["fault"], finding["subject"]["name"]) == (status, fault, subject)
    component = causes[0]["component"]
    assert (component["kind"], component["name"], component.get("part") or "") == blamed


DOWN = Fault.PORT_DOWN
UNREAD = Missing(Gap.DENIED, "x")
CARRIER = OF_INTERFACES[0]


def of(base: str, *reports: ToolReport, **facts: object) -> tuple[str, ...]:
    """What is made of the first report on a box, with its subject."""
    machine = box(base)
    machine = replace(machine, snapshot=replace(machine.snapshot, tool_reports=reports, **facts))
    found = next(each for each in run_checks(machine, CHECKS) if each.subject.part == (reports[0].fault or DOWN).word)
    fault = found.judgement.fault
    return (found.status.value, fault.word if fault else "", found.subject.kind, found.subject.name,
            found.subject.bdf or "")  # fmt: skip


def report(subject: str, fault: FaultKind, topic: str = "x", outcome: Outcome = "warn") -> ToolReport:
    return ToolReport(subject=subject, tool="t", topic=topic, outcome=outcome, fault=fault, text="words")


def unread_states() -> tuple[IbDevicePorts, ...]:
    return tuple(replace(row, ports=tuple(replace(port, state=UNREAD) for port in rows(row.ports)))
                 for row in rows(box("dgx-1-v100").snapshot.ib_ports))  # fmt: skip


@pytest.mark.parametrize(("base", "subject", "fault", "topic", "due"), [
    ("dgx-1-v100", "GPU0", Fault.NVLINK_REPORTED, "x", "warn"), ("k80-x8", "GPU0", Fault.NVLINK_REPORTED, "x", "skip"),
    *((base, subject, DOWN, CARRIER, due) for base, subject, due in (
        ("dgx-1-v100", "mlx5_0/1", "skip"), ("dgx-1-v100", "mlx5_9/1", "warn"), ("dgx-1-v100", "ib0", "skip"),
        ("dgx-1-v100", "0000:05:00.0/eth9", "skip"), ("dgx-1-v100", "0000:ff:00.0/eth9", "warn"),
        ("h100", "ib0", "warn"), ("unread", "mlx5_0/1", "warn"), ("unread", "ib0", "warn"),
        ("unread", "0000:05:00.0/eth9", "warn"),
    )),
    ("dgx-1-v100", "ib0", DOWN, "x", "warn"), ("dgx-1-v100", "ib0", Fault.PORT_ERRORS, CARRIER, "warn"),
])  # fmt: skip
def test_what_the_box_shows_refutes_a_tool(base: str, subject: str, fault: FaultKind, topic: str, due: str) -> None:
    facts = {"ib_ports": unread_states()} if base == "unread" else {}
    assert of("dgx-1-v100" if base == "unread" else base, report(subject, fault, topic), **facts)[0] == due


FABRIC = Fault.FABRIC_MANAGER_DOWN
SERVICE = report("host", FABRIC, NOT_STARTED)
FOUND = ToolReport(subject="host", tool="u", topic=CONFIGURED, outcome="note", fault=None, text="words")


@pytest.mark.parametrize(("base", "reports", "facts", "due"), [
    ("dgx-a100", (SERVICE,), {}, ("fail", FABRIC.word)), ("dgx-1-v100", (SERVICE,), {}, ("unknown", "")),
    ("dgx-a100", (report("host", FABRIC, OF_SERVICE[1]),), {}, ("warn", FABRIC.word)),
    ("dgx-1-v100", (report("host", FABRIC, OF_SERVICE[1]),), {}, ("unknown", "")),
    ("dgx-h100", (SERVICE,), {"pci": UNREAD, "gpu_modes": UNREAD}, ("fail", FABRIC.word)),
    ("dgx-1-v100", (SERVICE, FOUND), {}, ("warn", FABRIC.word)),
    ("dgx-1-v100", (SERVICE, report("host", FABRIC, "another")), {}, ("warn", FABRIC.word)),
])  # fmt: skip
def test_fabric_manager_ends_where_there_are_no_nvswitches(
    base: str, reports: tuple[ToolReport, ...], facts: dict[str, object], due: tuple[str, str]
) -> None:
    assert of(base, *reports, **facts)[:2] == due


@pytest.mark.parametrize(("subject", "due"), [
    ("0000.05.00.0", ("hca", "mlx5_0", "0000:05:00.0")), ("0000.ff.00.0", ("port", "0000:ff:00.0", "0000:ff:00.0")),
    ("0000.05.00.0/1", ("port", "0000.05.00.0/1", "0000:05:00.0")), ("GPU9", ("gpu", "GPU9", "")),
    ("0000.ff.00.0/1", ("port", "0000.ff.00.0/1", "0000:ff:00.0")), ("mlx5_0/1", ("port", "mlx5_0/1", "0000:05:00.0")),
    ("mlx5_7/1", ("port", "mlx5_7/1", "")), ("0000:08:00.0/3", ("port", "3", "0000:08:00.0")),
    ("0000:ff:00.0", ("gpu", "GPU@0000:ff:00.0", "0000:ff:00.0")), ("/dev/md0", ("disk", "md0", "")),
    ("eth9", ("port", "eth9", "")), ("host", ("host", "host", "")),
])  # fmt: skip
def test_who_is_meant(subject: str, due: tuple[str, str, str]) -> None:
    assert of("dgx-1-v100", report(subject, Fault.PORT_ERRORS))[2:] == due


def test_a_log_for_each_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As NCCL_DEBUG_FILE makes them: what each reports is counted, none contradicts another."""
    for number, text in enumerate((LOST, LOST + ECC, LOST)):
        (tmp_path / f"{number}.log").write_text(text)
    run(capsys, "import", *(str(tmp_path / f"{n}.log") for n in range(3)), "-o", str(tmp_path / "box.json"))
    document = json.loads(run(capsys, "health", "--format", "json", "--from", str(tmp_path / "box.json")).out)
    found = {each["fault"]: each["message"] for each in document["findings"] if each["id"] == "tools.reports"}
    assert found.keys() == {"transfer-unanswered", "ecc-uncorrected"}
    assert "(3 times)" in found["transfer-unanswered"]


def test_on_a_known_box_the_gpu_has_its_bus_id(judged: Any) -> None:
    (finding,), causes = judged(ECC, "--onto", "dgx-1-v100")
    assert finding["subject"]["bdf"] == "0000:0b:00.0"
    assert causes[0]["component"]["name"] == "GPU3"


def test_what_passed_is_one_result(judged: Any) -> None:
    findings, causes = judged(PASSED, only=())
    assert [each["status"] for each in findings if each["id"] == "tools.reports"] == ["pass"]
    assert causes == []


def test_a_box_without_such_outputs_has_no_such_finding(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "health", "--format", "json", "--from", "dgx-1-v100").out)
    assert not [each for each in document["findings"] if each["id"] == "tools.reports"]


def test_a_pasted_log_is_judged_on_the_box_that_it_is_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dmesg").write_text("[ 99.000001] NVRM: Xid (PCI:0000:0b:00): 79, pid=1, GPU has fallen off the bus.\n")
    run(capsys, "import", str(tmp_path / "dmesg"), "--onto", "dgx-1-v100", "-o", str(tmp_path / "box.json"))
    document = json.loads(run(capsys, "health", "--format", "json", "--from", str(tmp_path / "box.json")).out)
    bad = {(each["id"], each["subject"]["name"]) for each in document["findings"] if each["status"] == "fail"}
    assert bad == {("kernel.off-bus", "GPU3")}


def test_an_output_that_contradicts_the_box_is_a_finding(judged: Any) -> None:
    status = "Infiniband device 'mlx5_0' port 1 status:\n\tstate:\t\t {}\n\tphys state:\t 5: LinkUp\n"
    (finding,), _ = judged(status.format("1: DOWN"), "--onto", "dgx-1-v100")
    assert (finding["status"], finding["subject"]["name"]) == ("warn", "mlx5_0/1")
    assert finding["fault"] == "no-subnet-manager"
    findings, _ = judged(status.format("4: ACTIVE"), "--onto", "dgx-1-v100")
    assert findings == []


DUMP = """
Driver Version                        : {driver}
GPU 00000000:0B:00.0
    Product Name                      : {name}
    VBIOS Version                     : {vbios}
    ECC Mode
        Current                       : {ecc}
    PCI
        GPU Link Info
            Link Width
                Max                   : 16x
                Current               : {width}x
    Temperature
        GPU Current Temp              : {temperature} C
"""
SAME = {"driver": "550.127.05", "name": "Tesla V100-SXM2-16GB", "vbios": "88.00.18.00.01", "ecc": "Enabled",
        "width": "16", "temperature": "77"}  # fmt: skip


@pytest.mark.parametrize(("changed", "subject"), swept([
    ({}, ""), ({"temperature": "12"}, ""), ({"name": "NVIDIA Tesla V100-SXM2-16GB"}, ""),
    ({"driver": "535.54.03"}, "host"), ({"name": "Tesla V100-SXM2-32GB"}, "GPU3"),
    ({"vbios": "88.00.43.00.03"}, "GPU3"), ({"ecc": "Disabled"}, "GPU3"), ({"width": "8"}, "GPU3"),
], 2))  # fmt: skip
def test_a_lasting_answer_that_differs_is_a_finding_and_a_moment_is_none(
    changed: dict[str, str], subject: str, judged: Any
) -> None:
    found, _ = judged(DUMP.format(**{**SAME, **changed}), "--onto", "dgx-1-v100")
    named = [(each["fault"], each["subject"]["name"]) for each in found]
    assert named == ([("contradiction", subject)] if subject else [])
