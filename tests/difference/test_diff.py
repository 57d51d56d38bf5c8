"""``dgxcheck diff``: recordings, health reports and this machine, by exit code and document."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sample import BY_NAME, FAULTS, SAMPLE, swept
from schemas import complaints

from dgxcheck.assessment import compare as comparing
from dgxcheck.assessment.compare import called_as, namespace, side_of
from dgxcheck.assessment.machine import DEADLINE_S
from dgxcheck.cli import main
from dgxcheck.difference.compare import compare
from dgxcheck.output.plain_text import wrap_sentences
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.site_key import mark

Document = dict[str, Any]
Capture = pytest.CaptureFixture[str]


LOOK = comparing._look


@cache
def shipped_look(name: str, profile: str) -> comparing.Look:
    return LOOK(name, profile, DEADLINE_S, "/")


@pytest.fixture(autouse=True)
def what_ships_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(given: Any, profile: str, *more: Any) -> comparing.Look:
        ships = isinstance(given, str) and given in BY_NAME and more in ((DEADLINE_S, "/"), (DEADLINE_S, "/", None))
        return shipped_look(given, profile) if ships else LOOK(given, profile, *more)

    monkeypatch.setattr(comparing, "_look", look)


def said(capsys: Capture, *argv: str) -> tuple[int, Document]:
    code = main(["diff", *argv, "--format", "json"])
    document: Document = json.loads(capsys.readouterr().out)
    assert complaints("diff", document) == []
    assert document["summary"]["exit_code"] == code
    return code, document


def report(folder: Path, name: str) -> str:
    path = folder / f"{name}.health.json"
    main(["health", "--format", "json", "--from", name, "-o", str(path)])
    return str(path)


@pytest.mark.parametrize("fault", swept([name for name in SAMPLE if name in FAULTS], 3))
def test_a_fault_is_named_and_no_finding_beside_it(fault: str, capsys: Capture) -> None:
    overlay = json.loads(Path(FAULTS[fault]).read_text())
    expected = {(each["id"], each["bdf"], each["status"]) for each in overlay["expect"]["findings"]}
    code, document = said(capsys, overlay["base"], fault)
    findings = [each for each in document["differences"] if each["area"] == "finding"]
    assert {(each["what"].partition("/")[0], each["new"]) for each in findings} == {
        (check, status) for check, _, status in expected
    }
    assert {each["kind"] for each in findings} <= {"worse"}
    assert code == (1 if expected else 0)


def test_a_cure_is_better(capsys: Capture) -> None:
    code, document = said(capsys, "dgx-1-v100-switch-x8", "dgx-1-v100")
    assert (code, document["verdict"]) == (0, "better")
    assert {each["kind"] for each in document["differences"]} == {"better"}


def test_a_box_is_what_it_is(capsys: Capture) -> None:
    code, document = said(capsys, "k80-x8", "k80-x8")
    assert (code, document["verdict"], document["differences"], document["notes"]) == (0, "same", [], [])


def recording(folder: Path, name: str, *changes: tuple[str, str], **head: object) -> str:
    """A shipped one, changed."""
    text = (Path(__file__).parents[2] / "fixtures" / f"{name}.json").read_text()
    for old, new in changes:
        text = text.replace(old, new)
    made = folder / f"{len([*folder.iterdir()])}.json"
    made.write_text(json.dumps(json.loads(text) | head))
    return str(made)


@pytest.mark.parametrize(("serial", "notes"), [
    ("OTHER", ["two machines, serial numbers MADEUP0009 and OTHER: no GPU is the same"]), ("MADEUP0009", []),
])  # fmt: skip
def test_two_machines_of_one_kind_are_no_change_of_one(
    serial: str, notes: list[str], tmp_path: Path, capsys: Capture
) -> None:
    """The same chassis with other modules is one machine; and so is one with another number and the same modules."""
    other = recording(tmp_path, "dgx-h100", ("GPU-00000000-0000-0000-0009", "GPU-00000000-0000-0000-0077"),
                      ("MADEUP0009", serial))  # fmt: skip
    assert said(capsys, "dgx-h100", other)[1]["notes"] == notes
    assert said(capsys, "dgx-h100", recording(tmp_path, "dgx-h100", ("MADEUP0009", serial)))[1]["notes"] == []


def test_an_old_side_that_is_the_newer_one_is_noted(tmp_path: Path, capsys: Capture) -> None:
    first, second = (recording(tmp_path, "dgx-1-v100", recorded_at=f"2026-11-2{day}T12:00:00Z",
                               provenance={"kind": "recorded"}) for day in (1, 2))  # fmt: skip
    assert said(capsys, first, second)[1]["notes"] == []
    (note,) = said(capsys, second, first)[1]["notes"]
    assert note == "OLD was recorded after NEW (2026-11-22T12:00:00Z, 2026-11-21T12:00:00Z); they may be exchanged"
    for undated in (None, "", 5, "\x1b"):
        other = recording(tmp_path, "dgx-1-v100", recorded_at=undated, provenance={"kind": "recorded"})
        assert said(capsys, second, other)[1]["notes"] == []


@pytest.mark.parametrize(("changes", "seconds", "due"), [
    ({}, 3600.0, {}),
    ({"nvml nvmlDeviceGetNvLinkErrorCounter {gpu} 4 2": 500000}, 3600.0, {"nvlink.errors": "fail"}),
    ({"nvml nvmlDeviceGetNvLinkErrorCounter {gpu} 4 2": 500000}, 0.0, {}),  # no time between them
    ({"nvml nvmlDeviceGetPcieReplayCounter {gpu}": 1}, 86400.0, {}),
    ({"nvml nvmlDeviceGetTotalEccErrors {gpu} 0 0": 50000}, 86400.0, {"ecc.corrected": "warn"}),
    ({"nvml nvmlDeviceGetTotalEccErrors {gpu} 0 0": 50000,
      "text /proc/sys/kernel/random/boot_id": "00000000-0000-4000-8000-00000000abcd\n"}, 86400.0, {}),
    ({"text /sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error": "200000\n"}, 3600.0,
     {"network.port-errors": "fail"}),
])  # fmt: skip
def test_counters_are_judged_by_their_growth_in_one_boot(
    changes: Document, seconds: float, due: Document, tmp_path: Path, capsys: Capture
) -> None:
    uptime = open_source("dgx-h100").text("/proc/uptime")
    assert isinstance(uptime, str)
    now, idle = uptime.split()
    facts = {key.format(gpu="0000:61:00.0"): value for key, value in changes.items()}
    facts["text /proc/uptime"] = f"{float(now) + seconds:.2f} {idle}\n"
    path = tmp_path / "later.json"
    path.write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": "dgx-h100", "facts": facts}))
    code, document = said(capsys, "dgx-h100", str(path))
    found = [each for each in document["differences"] if each["area"] == "finding"]
    assert (code, {each["what"].partition("/")[0]: each["new"] for each in found}) == (bool(due), due)


def test_the_named_profile_judges_both(capsys: Capture) -> None:
    _, document = said(capsys, "k80-x8", "k80-x8-board-missing", "--profile", "k80-x8")
    assert "gpu.count" in {each["what"] for each in document["differences"]}
    assert {document[each]["profile"] for each in ("old", "new")} == {"k80-x8"}


def test_two_health_reports(tmp_path: Path, capsys: Capture) -> None:
    old, new = report(tmp_path, "dgx-1-v100"), report(tmp_path, "dgx-1-v100-switch-x8")
    capsys.readouterr()
    code, document = said(capsys, old, new)
    assert code == 1
    assert [(each["area"], each["what"]) for each in document["differences"]] == [
        ("finding", "pcie.path/0000:08:00.0"), ("score", "score"),
    ]  # fmt: skip
    assert document["notes"] == ["only findings are compared: a health report contains no facts"]
    assert said(capsys, old, old)[1]["differences"] == []
    assert said(capsys, old, "dgx-1-v100")[1]["differences"] == []


@pytest.mark.parametrize(("base", "spec"), [
    ("dgx-a100", "dgx-a100-remap-failed"), ("dgx-1-v100", "dgx-1-v100-switch-x8"),
])  # fmt: skip
def test_the_score_is_the_one_that_health_prints(base: str, spec: str, tmp_path: Path, capsys: Capture) -> None:
    sound, sick = (report(tmp_path, name) for name in (base, spec))
    totals = [json.loads(Path(path).read_text())["score"]["total"] for path in (sound, sick)]
    capsys.readouterr()
    for old, new in ((sound, sick), (base, spec), (base, sick), (sound, spec)):
        _, document = said(capsys, old, new)
        (score,) = (each for each in document["differences"] if each["area"] == "score")
        assert [score["old"], score["new"]] == [document[side]["score"] for side in ("old", "new")] == totals
        assert score["kind"] == "worse"


def test_a_finding_that_was_not_judged_again_is_no_cure(tmp_path: Path, capsys: Capture) -> None:
    old = report(tmp_path, "dgx-1-v100-xid-62")
    new = tmp_path / "quick.json"
    main(["health", "-q", "--format", "json", "--from", "dgx-1-v100-xid-62", "-o", str(new)])
    capsys.readouterr()
    _, document = said(capsys, old, str(new))
    assert {each["kind"] for each in document["differences"]} == {"neutral"}


def test_what_passed_once_for_all_was_judged(capsys: Capture) -> None:
    for old, new, words in (("dgx-1-v100", "dgx-1-v100-acs-redirect", "gdr.acs pass -> warn"),
                            ("dgx-1-v100-acs-redirect", "dgx-1-v100", "gdr.acs warn -> pass")):  # fmt: skip
        judged, control = (each for each in said(capsys, old, new)[1]["differences"] if each["area"] != "score")
        assert judged["message"].startswith(words)
        assert (control["what"], control["kind"]) == ("acs-control", "neutral")


def test_what_is_no_longer_judged_is_noted(tmp_path: Path, capsys: Capture) -> None:
    code, document = said(capsys, "dgx-1-v100", "dgx-1-v100-not-root")
    assert (code, document["differences"], document["notes"]) == (0, [], [
        "checked in OLD only: pcie.enabled, gdr.acs, gdr.max-payload, gdr.read-request",
    ])  # fmt: skip
    empty = tmp_path / "empty.json"
    empty.write_text('{"schema": "dgxcheck/health/1", "findings": []}')
    assert said(capsys, report(tmp_path, "dgx-1-v100"), str(empty))[1]["notes"][1].endswith(" more")


def test_a_gpu_that_is_gone_is_not_cured(capsys: Capture) -> None:
    _, document = said(capsys, "dgx-1-v100-hot", "dgx-1-v100-gpu-missing")
    assert "gone" in {each["change"] for each in document["differences"] if each["device"] == "GPU3"}
    assert all(each["kind"] != "better" for each in document["differences"] if each["device"] == "GPU3")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("live", "live"), "only one of OLD and NEW can be live"),
        (("dgx-1-v10", "live"), "no such recording"),
        (("dgx-1-v100", "nowhere.json"), "no such recording"),
        (("dgx-1-v100",), "missing argument 'NEW'"),
    ],
)
def test_what_names_nothing_is_refused(argv: tuple[str, ...], message: str, capsys: Capture) -> None:
    assert main(["diff", *argv]) == 3
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_two_texts(tmp_path: Path, capsys: Capture) -> None:
    """Their NVLinks are judged as health judges them, by the matrix itself."""
    names = [f"GPU{n}" for n in range(4)]
    whole = "\n".join(["\t".join(["", *names]), *("\t".join([a, *("X" if a == b else "NV18" for b in names)])
                                                for a in names)])  # fmt: skip
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text(whole)
    new.write_text(re.sub(r"(GPU2.*)NV18$|NV18(\tX)$", r"\1SYS\2", whole, flags=re.MULTILINE))
    code, document = said(capsys, str(old), str(new))
    assert code == 1
    assert [(each["area"], each["what"]) for each in document["differences"]] == [("finding", "nvlink.matrix")]


def test_the_width_of_a_link_in_two_texts(tmp_path: Path, capsys: Capture) -> None:
    head = "index, pci.bus_id, pcie.link.width.current, pcie.link.width.max"
    for name, lanes in (("old", 16), ("new", 8)):
        (tmp_path / name).write_text(f"{head}\n0, 00000000:07:00.0, {lanes}, 16\n")
    _, document = said(capsys, str(tmp_path / "old"), str(tmp_path / "new"))
    (told,) = (each for each in document["differences"] if each["area"] == "link")
    assert (told["kind"], told["message"]) == ("worse", "link is narrower: x16 -> x8")


def test_a_result_in_one_line_is_refused_with_what_reads_it(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "result.jsonl"
    main(["health", "--from", "dgx-1-v100", "--format", "jsonl", "-o", str(path)])
    assert main(["diff", str(path), "dgx-1-v100"]) == 3
    assert "dgxcheck diff compares those of --format json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "findings", ["none", [1], [{"key": 1}], [{"key": "a", "status": "bad", "subject": {}}], [{"key": "a"}]]
)
def test_a_broken_health_report_is_refused(findings: object, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps({"schema": "dgxcheck/health/1", "findings": findings}))
    assert main(["diff", str(path), "dgx-1-v100"]) == 3
    assert capsys.readouterr().err.startswith(f"dgxcheck: {path}: ")


@pytest.mark.parametrize("changes", [
    {"score": {"total": "100"}}, {"score": {"total": -1}}, {"score": {"total": True}}, {"score": 100},
    {"profile": {"name": 3}}, {"profile": "dgx"}, {"schema": "dgxcheck/health/3"},
])  # fmt: skip
def test_a_health_report_of_another_form_is_refused(changes: Document, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"schema": "dgxcheck/health/1", "findings": []} | changes))
    assert main(["diff", str(path), "dgx-1-v100"]) == 3
    told = capsys.readouterr().err
    assert told.startswith(f"dgxcheck: {path}: ")
    assert told.count("\n") == 1
    assert "schema" not in changes or "this version reads dgxcheck/health/1 and dgxcheck/health/2" in told


OLD = Path(__file__).parent / "health-1.json"
"""Some findings of dgx-1-v100-switch-x8, as the version before schema number 2 printed them."""


def test_a_health_report_of_schema_1_is_read(tmp_path: Path, capsys: Capture) -> None:
    assert json.loads(OLD.read_text(encoding="utf-8"))["schema"] == "dgxcheck/health/1"
    new = report(tmp_path, "dgx-1-v100")
    for old, now, kind, link, score in (
        (str(OLD), new, "better", "pcie.path fail -> pass", "99.3 -> 100"),
        (new, str(OLD), "worse", "pcie.path pass -> fail", "100 -> 99.3"),
    ):
        code, document = said(capsys, old, now)
        messages = [each["message"] for each in document["differences"] if each["kind"] == kind]
        assert code == (kind == "worse")
        assert len(messages) == 2
        assert (messages[0].startswith(link), messages[1].startswith(score)) == (True, True)


def test_a_profile_is_not_for_health_reports(tmp_path: Path, capsys: Capture) -> None:
    path = report(tmp_path, "dgx-1-v100")
    assert main(["diff", path, path, "--profile", "k80-x8"]) == 3
    assert "--profile does not apply to two health reports" in capsys.readouterr().err


def test_hostile_names_reach_no_terminal(tmp_path: Path, capsys: Capture) -> None:
    finding = {"key": "a.b/\x1b[31m", "status": "fail", "subject": {"name": "\x1b]0;x\x07", "bdf": None},
               "message": "one\ntwo\x1b[2J"}  # fmt: skip
    for name, findings in (("old", []), ("new", [finding])):
        (tmp_path / name).write_text(json.dumps({"schema": "dgxcheck/health/1", "findings": findings}))
    assert main(["diff", str(tmp_path / "old"), str(tmp_path / "new"), "--color", "never"]) == 1
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(("argv", "marked"), [
    (("diff", "dgx-1-v100-ecc-off", "dgx-1-v100-hot"), ("\x1b[1;31mWORSE", "\x1b[32mBETTER")),
    (("topo", "--rdma", "--from", "dgx-1-v100-port-down"), ("\x1b[32mready", "\x1b[33mslow", "\x1b[1;31mno")),
])  # fmt: skip
def test_colour_marks_what_is_worse(argv: tuple[str, ...], marked: tuple[str, ...], capsys: Capture) -> None:
    main([*argv, "--color", "always"])
    colorize = capsys.readouterr().out
    main([*argv, "--color", "never"])
    assert re.sub(r"\x1b\[[0-9;]*m", "", colorize) == capsys.readouterr().out
    assert all(each in colorize for each in marked)


def test_two_kinds_of_machine_are_called_so(capsys: Capture) -> None:
    kinds = "Two kinds of machine: dgx-1-v100 and dgx-a100.\n"
    main(["diff", "dgx-1-v100", "dgx-a100"])
    assert kinds in capsys.readouterr().out
    main(["diff", "dgx-1-v100", "dgx-1-v100-hot"])
    assert "Two kinds" not in capsys.readouterr().out


def test_a_difference_is_one_line_in_a_pipe_and_fits_a_terminal(capsys: Capture) -> None:
    assert main(["diff", "dgx-1-v100", "dgx-1-v100-hot", "--color", "never"]) == 1
    text = capsys.readouterr().out
    (worse,) = [line for line in text.splitlines() if "thermal.temperature" in line]
    assert worse.endswith("88 °C (slowdown at 87 °C)")
    assert max(map(len, wrap_sentences(text, 80).splitlines())) <= 80


def test_pseudonyms_of_one_site_are_comparable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A recording under this site's key, against the same box with its identities kept."""
    (tmp_path / "dgxcheck").mkdir()
    (tmp_path / "dgxcheck" / "site.key").touch(0o600)
    (tmp_path / "dgxcheck" / "site.key").write_bytes(b"a key of one site")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if (user := os.geteuid()) == 0:  # root uses the system's key alone
        user = 1000
        os.chown(tmp_path / "dgxcheck" / "site.key", user, user)
    monkeypatch.setattr("dgxcheck.source.recording.site_key.os.geteuid", lambda: user)
    kept, own, other = (str(tmp_path / name) for name in ("kept.json", "own.json", "other.json"))
    document = json.loads(Path(_whole(tmp_path)).read_text())
    Path(kept).write_text(json.dumps(document | {"identities": "kept"}))
    assert main(["record", own, "--from", kept]) == 0
    (tmp_path / "dgxcheck" / "site.key").write_bytes(b"the key of another")
    assert main(["record", other, "--from", kept]) == 0
    (tmp_path / "dgxcheck" / "site.key").write_bytes(b"a key of one site")
    capsys.readouterr()
    assert namespace(open_source(own)) == mark(b"a key of one site") != namespace(open_source(other))
    live = side_of(open_source(kept))
    mine = side_of(open_source(own))
    assert compare(mine, called_as(live, mine.namespace)).notes == ()
    assert main(["diff", own, kept]) == 0
    assert "not comparable" not in capsys.readouterr().out
    facts = document["facts"]
    facts["/proc"]["text"]["uptime"] = "900000.00 1.00\n"
    facts["/sys/class/infiniband/mlx5_1/ports/1/counters"]["text"]["symbol_error"] = "200000\n"
    Path(kept).write_text(json.dumps(document | {"identities": "kept"}))
    assert main(["diff", own, kept]) == 1
    assert "200000 new errors in 10 hours" in capsys.readouterr().out
    assert main(["diff", own, other]) == 0
    assert "identities not comparable" in capsys.readouterr().out


def _whole(folder: Path) -> str:
    path = str(folder / "whole.json")
    assert main(["record", path, "--from", "dgx-1-v100"]) == 0
    return path
