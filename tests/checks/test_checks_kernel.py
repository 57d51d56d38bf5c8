"""kernel.xid, kernel.off-bus, kernel.aer: numbers, gaps, how far the log goes back, --kernel-log, recording it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from sample import swept
from seam import document, is_one_clear_line, run
from test_health_checks import GPU2, box, changed, status
from test_hostile_text import EVIL, HIDDEN

from dgxcheck.checks.engine.run import run as run_checks
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.kernel_log import MARK
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.source.kernel_log.kmsg import RESTRICTED, line, read
from dgxcheck.source.live import LiveSource
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.xid.table import is_listed, meaning
from probes.kernel_log import facts, kernel_log

X = "NVRM: Xid (PCI:0000:0a:00): "
DAY = 86400.0


def logged(folder: Path, *lines: tuple[float, str], base: str = "dgx-1-v100") -> str:
    """A box with these lines after its own three."""
    path = Path(changed(folder, {}, base))
    added = {f"kmsg {number}": line(seconds, message) for number, (seconds, message) in enumerate(lines, 3)}
    path.write_text(json.dumps(document(path) | {"add": added}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ([], "pass"),
        (["8, pid=1, name=a, x", "13, pid=1, x", "31, x", "45, x", "43, x", "68, x"], "pass"),
        (["48, x"], "fail"), (["62, x"], "fail"), (["63, x"], "warn"), (["64, x"], "fail"), (["79, x"], "pass"),
        (["74, x"], "warn"), (["74, x", "74, x"], "fail"), (["92, x"], "warn"), (["94, x"], "warn"),
        (["95, x"], "fail"),
        (["149, NETIR_LINK_EVT Fatal XC0"], "fail"), (["145, RLW_RXPIPE Nonfatal XC0"], "warn"),
        (["145, RLW Non-Fatal XC0"], "warn"),
        (["154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"], "fail"),
        (["154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"], "warn"),
        (["48, x", "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"], "pass"),
        (["999, x"], "warn"), (["45, x", "63, x", "44, x"], "warn"),
    ],
)  # fmt: skip
def test_xids(said: list[str], due: str, tmp_path: Path) -> None:
    spec = logged(tmp_path, *((100.0 + n, X + each) for n, each in enumerate(said)))
    assert status(spec, "kernel.xid") == due
    assert status(spec, "kernel.xid", "0000:06:00.0") == "pass"


@pytest.mark.parametrize(
    ("pids", "apart", "due"),
    [((1, 2), 1.0, "pass"), ((1, 2, 3), 1.0, "warn"), ((1, 2, 2), 1.0, "pass"), ((1, 2, 3), DAY / 2, "pass"),
     ((1, 2, 3), DAY / 2 - 1, "warn"), ((0, 0, 0), 1.0, "pass")],
)  # fmt: skip
def test_processes_within_a_day(pids: tuple[int, ...], apart: float, due: str, tmp_path: Path) -> None:
    spec = logged(tmp_path, *((100 + n * apart, f"{X}13, pid={pid}, name=a, x") for n, pid in enumerate(pids)))
    assert status(spec, "kernel.xid") == due


@pytest.mark.parametrize(
    ("severity", "count", "apart", "due"),
    [("Corrected", 100, 1.0, "pass"), ("Corrected", 101, 1.0, "warn"), ("Corrected", 200, DAY / 99, "pass"),
     ("Uncorrected (Non-Fatal)", 1, 1.0, "warn"), ("Uncorrected (Fatal)", 1, 1.0, "fail")],
)  # fmt: skip
def test_pcie_errors(severity: str, count: int, apart: float, due: str, tmp_path: Path) -> None:
    said = "0000:0a:00.0: PCIe Bus Error: severity="
    spec = logged(tmp_path, *((100 + n * apart, f"nvidia {said}{severity}, type=x") for n in range(count)))
    assert status(spec, "kernel.aer") == due
    port = [(100 + n * apart, f"pcieport 0000:09:08.0: PCIe Bus Error: severity={severity}") for n in range(count)]
    assert status(logged(tmp_path, *port), "kernel.aer", "0000:09:08.0") == due


def test_off_the_bus_is_told_of_a_gpu_that_is_nowhere(tmp_path: Path) -> None:
    spec = logged(tmp_path, (100.0, "NVRM: GPU 0000:77:00.0: GPU has fallen off the bus."))
    assert status(spec, "kernel.off-bus", "0000:77:00.0") == "fail"
    assert status(spec, "kernel.off-bus") == "pass"


@pytest.mark.parametrize(
    ("said", "due"),
    [("20034, Fatal, x", "fail"), ("20034, x", "fail"), ("12028, Non-fatal, x", "warn"), ("22013, Minion", "pass"),
     ("20034, Non-fatal, x", "warn"),
     ("11012, Non-fatal, x", "pass"), ("11012, Fatal, x", "fail"), ("99999, Non-fatal, x", "warn")],
)  # fmt: skip
def test_an_nvswitch_is_judged_by_its_sxids(said: str, due: str, tmp_path: Path) -> None:
    spec = logged(tmp_path, (100.0, f"nvidia-nvswitch0: SXid (PCI:0000:c7:00.0): {said}"), base="dgx-a100")
    assert status(spec, "kernel.xid", "0000:c7:00.0") == due


BOARD = "NVRM: GPU 0000:0a:00.0: "
HCA, PORT = "0000:0c:00.0", "0000:09:08.0"
MLX5 = f"mlx5_core {HCA}: "
REACHES = {
    "Xid": ([f"{X}62, pid=12, name=python3, x"], "kernel.xid", GPU2, "fail"),
    "Xid of old": (["NVRM: Xid (0000:0a:00): 62, Channel 1"], "kernel.xid", GPU2, "fail"),
    "Xid with a function": (["NVRM: Xid (PCI:0000:0a:00.0): 62, x"], "kernel.xid", GPU2, "fail"),
    "Xid of a MIG device": (["NVRM: Xid (PCI:0000:0a:00 GPU-I:05 GPU-CI:00): 95, x"], "kernel.xid", GPU2, "fail"),
    "Xid without a process": ([f"{X}95, pid='<unknown>', name=<unknown>, x"], "kernel.xid", GPU2, "fail"),
    "Xid caused by another": ([f"{X}45, Ch 8, caused by previous Xid 62", f"{X}62, x"], "kernel.xid", GPU2, "fail"),
    **{
        f"Xid {number} {word}": ([f"{X}{number}, NETIR_LINK_EVT {word} XC0 i0 Link 08 (0x1)"], "kernel.xid", GPU2, due)
        for number in range(144, 151) for word, due in (("Fatal", "fail"), ("Nonfatal", "warn"))
    },
    "off the bus": ([f"{BOARD}GPU has fallen off the bus."], "kernel.off-bus", GPU2, "fail"),
    "off the bus, of old": (["NVRM: GPU at 0000:0a:00.0 has fallen off the bus."], "kernel.off-bus", GPU2, "fail"),
    "off the bus, in three lines": (
        ["NVRM: The NVIDIA GPU 0000:0a:00.0", "NVRM: (PCI ID: 10de:1db1) installed in this system has",
         "NVRM: fallen off the bus and is not responding to commands."], "kernel.off-bus", GPU2, "fail",
    ),
    "Xid 79": ([f"{X}79, pid=1, name=x, GPU has fallen off the bus."], "kernel.off-bus", GPU2, "fail"),
    "not started, but listed": ([f"{BOARD}RmInitAdapter failed! (0x26:0xffff:1290)"], "kernel.gpu-start", GPU2, "warn"),
    "not started, in small": ([f"{BOARD}rm_init_adapter failed, device minor number 2"], "kernel.gpu-start", GPU2,
                              "warn"),
    "one that is nowhere did not start": (
        ["NVRM: GPU 0000:77:00.0: RmInitAdapter failed! (0x1:0x2:3)"], "kernel.gpu-start", "0000:77:00.0", "fail"),
    "some GPU did not start": (["NVRM: RmInitAdapter failed! (0x26:0xffff:1290)"], "kernel.gpu-start", None, "warn"),
    "not powered": ([f"{BOARD}GPU does not have the necessary power cables connected."], "kernel.gpu-start", GPU2,
                    "warn"),
    "turned away": (["NVRM: API mismatch: the client has the version 535.1, but"], "driver.version-match", None,
                    "warn"),
    "turned away, of this version": (["NVRM: API mismatch: the client has the version 550.127.05, but"],
                                     "driver.version-match", None, "pass"),
    "PCIe error": (["pcieport 0000:09:08.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=x"], "kernel.aer",
                   PORT, "fail"),
    "PCIe error announced": (["pcieport 0000:00:03.0: AER: Uncorrected (Non-Fatal) error received: 0000:0a:00.0"],
                             "kernel.aer", GPU2, "warn"),
    "PCIe error announced by id": (["pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: id=0a00"],
                                   "kernel.aer", GPU2, "fail"),
    "PCIe error announced otherwise": (
        ["pcieport 0000:00:03.0: AER: Uncorrectable (Fatal) error message received from 0000:0a:00.0"], "kernel.aer",
        GPU2, "fail"),
    "HCA not started": ([f"{MLX5}mlx5_load_one failed with error code -22"], "kernel.hca", HCA, "fail"),
    "HCA without power": ([f"{MLX5}mlx5_pcie_event:299:(pid 1): Detected insufficient power on the PCIe slot (27W)."],
                          "kernel.hca", HCA, "warn"),
    "HCA that hangs": ([f"{MLX5}poll_health:174: device's health compromised - reached miss count."], "kernel.hca", HCA,
                       "fail"),
    "HCA too hot": ([f"{MLX5}temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1"], "kernel.hca",
                    HCA, "warn"),
    "HCA started since": ([f"{MLX5}mlx5_load_one failed with error code -22", f"{MLX5}firmware version: 12.28.2006"],
                          "kernel.hca", HCA, "pass"),
    "module": ([f"{MLX5}Port module event[error]: module 0, Cable error, High Temperature"], "kernel.port-module", HCA,
               "warn"),
    "module changed since": ([f"{MLX5}Port module event[error]: module 0, Cable error, Bus stuck",
                              f"{MLX5}Port module event: module 0, Cable plugged"], "kernel.port-module", HCA, "pass"),
    "module of whatever number, of an adapter with one port": (
        [f"{MLX5}Port module event[error]: module 1, Cable error, Bus stuck"], "kernel.port-module", HCA, "warn"),
    "a register that may not be read": (
        [f"{MLX5}mlx5_cmd_out_err:838:(pid 9): ACCESS_REG(0x805) op_mod(0x1) failed, err(-22)"] * 50, "kernel.hca", HCA,
        "pass"),
}  # fmt: skip
"""Lines, and the check that tells of them, at which device, with which status."""
FURTHER = {f"Xid {number} {word}" for number in range(145, 150) for word in ("Fatal", "Nonfatal")}
"""Of the same form as Xids 144 and 150."""


@pytest.mark.parametrize("form", swept(REACHES, REACHES.keys() - FURTHER))
def test_each_form_of_line_reaches_a_finding_at_its_device(form: str, tmp_path: Path) -> None:
    said, check, bdf, due = REACHES[form]
    spec = logged(tmp_path, *((100.0 + n, each) for n, each in enumerate(said)))
    found = run_checks(box(spec), CHECKS)
    assert [each.status.value for each in found if (each.id, each.subject.bdf) == (check, bdf)] == [due]
    others = {each.key for each in found if each.status.value in ("warn", "fail", "unknown")}
    assert len(others) == (due != "pass")


@pytest.mark.parametrize(("after", "due"), [(-1, {"kernel.off-bus", "kernel.gpu-start"}), (0, {"kernel.off-bus"})])
def test_a_gpu_that_fell_off_the_bus_is_tried_again(after: int, due: set[str], tmp_path: Path) -> None:
    """From the second of its fall on; words without a bus id before it are about some other."""
    fell, tried = (100.0, f"{BOARD}GPU has fallen off the bus."), (100.0 + after, "NVRM: RmInitAdapter failed! (0x26:")
    found = run_checks(box(logged(tmp_path, *((tried, fell) if after < 0 else (fell, tried)))), CHECKS)
    assert {each.id for each in found if each.status.value in ("warn", "fail")} == due


def test_words_without_a_bus_id_are_about_the_one_gpu_that_is_not_listed(tmp_path: Path) -> None:
    path = Path(logged(tmp_path, (100.0, "NVRM: RmInitAdapter failed! (0x27:0x38:1193)")))
    gone: Json = {"nvml nvmlDeviceGetHandleByIndex 2": {"missing": "lost", "detail": "NVML 15: GPU is lost"}}
    path.write_text(json.dumps(document(path) | {"facts": gone}), encoding="utf-8")
    assert status(str(path), "kernel.gpu-start") == "fail"


def test_the_bits_of_an_error_and_that_it_stayed_are_told(tmp_path: Path) -> None:
    error = f"nvidia {GPU2}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=x"
    more = (
        f"nvidia {GPU2}:    [14] CmpltTO  (First)",
        f"nvidia {GPU2}: AER: can't recover (no error_detected callback)",
    )
    spec = logged(tmp_path, *((100.0, each) for each in (error, *more)))
    (check,) = [each for each in CHECKS if each.id == "kernel.aer"]
    (found,) = [each for each in run_checks(box(spec), [check]) if each.subject.bdf == GPU2]
    assert "1 non-fatal (CmpltTO 1); the kernel could not recover the device" in found.judgement.message
    assert not found.judgement.remedy
    fatal = logged(tmp_path, *((100.0, each.replace("Non-Fatal", "Fatal")) for each in (error, *more)))
    (found,) = [each for each in run_checks(box(fatal), [check]) if each.subject.bdf == GPU2]
    assert f"lspci -x -s {GPU2} prints" in found.judgement.remedy


OF_THE_LOG = ("kernel.xid", "kernel.off-bus", "kernel.aer", "kernel.gpu-start", "kernel.hca", "kernel.port-module")


@pytest.mark.parametrize("check", OF_THE_LOG)
@pytest.mark.parametrize(
    ("gap", "due"),
    [(Gap.ABSENT, "skip not-supported"), (Gap.DENIED, "skip no-permission"), (Gap.UNASKED, "skip not-in-level"),
     (Gap.UNRECORDED, "skip not-recorded"), (Gap.GARBLED, "unknown")],
)  # fmt: skip
def test_a_log_that_cannot_be_read_never_passes(check: str, gap: Gap, due: str) -> None:
    known = box("dgx-1-v100")
    blind = replace(known, snapshot=replace(known.snapshot, kernel_log=Missing(gap, "/dev/kmsg", "why")))
    (wanted,) = [each for each in CHECKS if each.id == check]
    for finding in run_checks(blind, [wanted]):
        assert " ".join([finding.status.value, finding.judgement.reason]).rstrip() == due
        assert "why" in finding.judgement.message


@pytest.mark.parametrize(
    ("mark", "due"),
    [(line(0.0, MARK), ""), (line(5000.0, MARK), "the log starts 5000 s after boot"),
     (line(0.0, "dgxcheck: log begins, its times do not count from boot"), "the log may not reach back to boot")],
)  # fmt: skip
def test_a_log_that_does_not_reach_back_says_so(mark: str, due: str) -> None:
    known = box("dgx-1-v100")
    for more in ((), (line(6000.0, f"{X}62, x"),)):
        log = facts([mark, *more], "here")
        checks = [each for each in CHECKS if each.id.startswith("kernel.")]
        messages = [
            finding.judgement.message
            for finding in run_checks(replace(known, snapshot=replace(known.snapshot, kernel_log=log)), checks)
        ]
        assert all((due in message) if due else ("boot" not in message) for message in messages)


def test_a_gpu_of_another_driver_is_not_judged(tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"link /sys/bus/pci/devices/{GPU2}/driver": "../../../../bus/pci/drivers/vfio-pci"})
    assert status(spec, "kernel.xid") == "skip not-visible"


def test_with_some_gpus_asked_for_nothing_else_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = logged(tmp_path, (100.0, "NVRM: GPU 0000:77:00.0: GPU has fallen off the bus."))
    assert run(capsys, "health", "--only", "kernel", "--from", spec).code == 2
    assert run(capsys, "health", "--only", "kernel", "-i", "0", "--from", spec).code == 0


def test_63_and_64_are_of_pages_before_ampere_and_of_rows_from_then_on() -> None:
    for number in (63, 64):
        assert "page" in meaning(number, 5).text
        assert "row" not in meaning(number, 5).text
        assert "row" in meaning(number, 7).text
        assert "page" in meaning(number, None).text
        assert "row" in meaning(number, None).text
    assert meaning(12345, 5).severity == "warn"
    assert not [number for number in range(900, 999) if is_listed(number)]


def test_a_saved_log_stands_in_for_that_of_the_box(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "dmesg.txt"
    saved.write_text(f"[    0.000000] Linux version 5.15\n[  100.0] {X}62, x\n", encoding="utf-8")
    said = run(capsys, "health", "--from", "dgx-1-v100", "--kernel-log", str(saved), "--format", "json")
    (bad,) = [each for each in json.loads(said.out)["findings"] if each["status"] == "fail"]
    assert (said.code, bad["id"], bad["subject"]["bdf"]) == (2, "kernel.xid", GPU2)
    assert bad["evidence"][0]["where"] == str(saved)


def test_a_log_is_read_from_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for text, code, words in ((f"[  100.0] {X}62, x\n", 2, "Xid 62"), ("", 3, "stdin: not a kernel log")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        said = run(capsys, "health", "-q", "--from", "dgx-1-v100", "--kernel-log", "-")
        assert (said.code, words in said.out + said.err) == (code, True)


@pytest.mark.parametrize(
    "content", ["", "hello\n", '{"schema": 1}', "\x00\xff" * 99, "NVRM: Xid (PCI:0000:06:00): 62, x"]
)
def test_what_is_no_log_is_refused_in_one_line(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "dmesg.txt"
    saved.write_bytes(content.encode("latin-1"))
    said = run(capsys, "health", "--from", "dgx-1-v100", "--kernel-log", str(saved))
    assert (said.code, said.out) == (3, "")
    assert is_one_clear_line(said.err)
    assert "not a kernel log" in said.err


@pytest.mark.parametrize("name", ["", "/", "/nonexistent", "/dev/null", "a\0b"])
def test_what_is_no_file_is_refused_in_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "health", "--from", "dgx-1-v100", "--kernel-log", name)
    assert (said.code, said.out) == (3, "")
    assert is_one_clear_line(said.err)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "dmesg.txt"
    saved.touch()
    os.truncate(saved, (64 << 20) + 1)
    said = run(capsys, "health", "--from", "dgx-1-v100", "--kernel-log", str(saved))
    assert said.code == 3
    assert is_one_clear_line(said.err)


@pytest.mark.parametrize("form", ["text", "json", "prometheus", "nagios"])
def test_hostile_lines_reach_no_terminal(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = EVIL.replace("\n", " ").replace("\r", " ")
    saved = tmp_path / "dmesg.txt"
    saved.write_text(f"[ 1.0] {X}62, pid=1, name={evil}, {evil}\n[ 1.0] {X}144, {evil}\n", encoding="utf-8")
    said = run(capsys, "health", "-v", "--format", form, "--from", "dgx-1-v100", "--kernel-log", str(saved))
    assert said.code == 2
    assert "kernel.xid" in said.out
    assert not HIDDEN.findall(said.out + said.err)


def live(folder: Path, content: bytes | None) -> LiveSource:
    (folder / "dev").mkdir()
    if content is not None:
        (folder / "dev/kmsg").write_bytes(content)
    return LiveSource(str(folder))


KMSG = (
    f"6,0,0,-;Linux version 5.15\n4,1,5000000,-;{X}62, x\n SUBSYSTEM=pci\n".encode()
    + b"6,2,6000000,-;\xff\\x1b[31m NVRM: x\n"
)


def test_the_log_of_this_machine_is_read_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    source = live(tmp_path, KMSG)
    recorder = RecordingSource(source)
    found = kernel_log(recorder)
    source.close()
    assert not isinstance(found, Missing)
    assert [(each.bdf, each.number, each.seconds) for each in found.xids] == [(GPU2, 62, 5.0)]
    assert found.begins == 0.0
    assert recorder.facts == {"kmsg 0": f"0.000000;{MARK}", "kmsg 1": f"5.000000;{X}62, x"}


@pytest.mark.parametrize(("content", "gap"), [(None, Gap.ABSENT), (b"", Gap.ABSENT), (b"\xff\x00" * 99, Gap.ABSENT)])
def test_without_a_log_there_is_a_gap_and_it_is_recorded(tmp_path: Path, content: bytes | None, gap: Gap) -> None:
    source = live(tmp_path, content)
    recorder = RecordingSource(source)
    said = recorder.kernel_log()
    source.close()
    assert isinstance(said, Missing)
    assert (said.gap, said.where) == (gap, "/dev/kmsg")
    assert [*recorder.facts] == ["kmsg 0"]


def test_a_log_that_may_not_be_read_says_what_would_help(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (tmp_path / "kmsg").write_bytes(KMSG)
    (tmp_path / "kmsg").chmod(0)
    said = read(str(tmp_path / "kmsg"))
    assert said == Missing(Gap.DENIED, "/dev/kmsg", RESTRICTED)


def test_a_log_is_recorded_and_hides_who_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines: dict[str, Json] = {
        "0": f"0.000000;{MARK}",
        "1": "1.000000;NVRM: GPU at PCI:0000:0a:00: GPU-660d987e-5b28-3bf6-2a2d-1d5ecae7f6df",
        "2": "1.000000;NVRM: GPU Board Serial Number: 0322716036227",
        "3": "1.000000;NVRM: GPU serial number is 0323617057482.",
        "4": f"1.000000;{X}62, pid=4242, name=alicetool, 0x1",
        "5": "2.000000;NVRM: API mismatch: the client 'alicetool' (pid 77) has the version 1.2.3, but",
        "10": "3.000000;mlx5_core 0000:05:00.0: bigbox.example.com link down",
    }
    host: dict[str, Json] = {"text": {"hostname": "bigbox\n"}}
    head = {"schema": "dgxcheck/recording/1", "identities": "kept", "provenance": {"kind": "recorded"}}
    path, again, same = (tmp_path / name for name in ("box.json", "again.json", "same.json"))
    path.write_text(json.dumps(head | {"facts": {"kmsg": lines, "/proc/sys/kernel": host}}), encoding="utf-8")
    assert run(capsys, "record", str(again), "--from", str(path)).code == 0
    text = again.read_text(encoding="utf-8")
    for told in ("alicetool", "660d987e", "0322716036227", "0323617057482", "bigbox"):
        assert told not in text
    for needed in ("Xid (PCI:0000:0a:00): 62, pid=4242, name=process-", "GPU at PCI:0000:0a:00: GPU-", "1.2.3"):
        assert needed in text
    assert run(capsys, "record", str(same), "--from", str(path), "--keep-identity").code == 0
    kept = document(same)["facts"]
    assert isinstance(kept, dict)
    assert isinstance(kept["kmsg"], dict)
    assert [*kept["kmsg"].values()] == [lines[key] for key in sorted(lines, key=int)]
