"""Acknowledged findings: visible in every format, not in the verdict, and back when they grow or the date is past."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import swept
from schemas import complaints
from seam import judge_once

from dgxcheck.checks.engine.finding import Finding, Judgement, Status, Subject
from dgxcheck.checks.engine.run import acknowledged, counts, verdict
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli import main
from dgxcheck.configuration import settings
from dgxcheck.facts.missing import BadInput
from dgxcheck.settings import Acknowledgement

IDS = tuple(check.id for check in CHECKS)
PAGES = "ecc.retired-pages"
TODAY = "2026-11-21"
GPU = Subject(kind="gpu", name="GPU1", bdf="0000:07:00.0", uuid="GPU-12ab", serial="0324")
HOST = Subject(kind="host", name="host", bdf=None)
Capture = pytest.CaptureFixture[str]


def known(**changes: Any) -> Acknowledgement:
    given: dict[str, Any] = {
        "check": PAGES,
        "device": "0000:07:00.0",
        "ceiling": 12,
        "reason": "known",
        "expiry": TODAY,
    }
    return Acknowledgement(**given | changes)


def finding(measured: Any = 11, expected: Any = 10, status: Status = Status.WARN, subject: Subject = GPU) -> Finding:
    said = Judgement(status, "retired", measured, expected, "pages")
    return Finding(id=PAGES, subject=subject, judgement=said, source="", remedy="replace")


def held(of: Finding, *by: Acknowledgement) -> bool:
    (found,) = acknowledged([of], by, TODAY)
    return found.acknowledged


@pytest.mark.parametrize("device", ["0000:07:00.0", "00000000:07:00.0", "07:00.0", "GPU-12AB", "0324"])
def test_a_device_has_several_names(device: str) -> None:
    assert held(finding(), known(device=device))


@pytest.mark.parametrize("changes", [{"device": "0000:06:00.0"}, {"device": "GPU1"}, {"device": ""},
                                     {"check": "ecc.mode"}])  # fmt: skip
def test_it_is_about_one_check_of_one_device(changes: dict[str, str]) -> None:
    assert not held(finding(), known(**changes))


@pytest.mark.parametrize(("device", "holds"), [
    ("mlx4_0/2", True), ("0000:07:00.0", True), ("mlx4_0/1", False), ("mlx4_0", False),
])  # fmt: skip
def test_a_port_has_a_name_of_its_own(device: str, holds: bool) -> None:
    port = Subject(kind="port", name="mlx4_0/2", bdf="0000:07:00.0", part="2")
    assert held(finding(subject=port), known(device=device)) is holds


def test_without_a_device_it_is_about_the_host() -> None:
    assert held(finding(subject=HOST), known(device=""))
    assert not held(finding(subject=HOST), known())


@pytest.mark.parametrize(("measured", "expected", "holds"), [
    (12, 10, True), (13, 10, False), (12, 16, True), (11, 16, False), ("many", 10, False), (None, None, False),
    (12, None, True), (13, None, False), (13, "many", False),
])  # fmt: skip
def test_it_comes_back_beyond_its_ceiling(measured: Any, expected: Any, holds: bool) -> None:
    assert held(finding(measured, expected), known()) is holds
    assert held(finding(measured, expected), known(ceiling=None))


def test_it_comes_back_the_day_after() -> None:
    assert held(finding(), known(expiry=TODAY))
    (found,) = acknowledged([finding()], [known(expiry="2026-11-20")], TODAY)
    assert not found.acknowledged
    assert found.acknowledgement is not None
    assert found.acknowledgement.lapsed == "it expired on 2026-11-20"


def test_one_that_holds_is_enough() -> None:
    assert held(finding(), known(expiry="2020-01-01"), known())


@given(st.lists(st.tuples(st.sampled_from(Status), st.booleans())))
def test_the_verdict_is_that_of_the_others(seen: list[tuple[Status, bool]]) -> None:
    findings = [finding(status=status, subject=GPU if mine else HOST) for status, mine in seen]
    marked = acknowledged(findings, [known()], TODAY)
    others = [each for each in marked if not each.acknowledged]
    assert all(each.status in (Status.WARN, Status.FAIL) for each in marked if each.acknowledged)
    assert counts(marked) == counts(others)
    if any(each.status is not Status.SKIP for each in others):
        assert verdict(marked) == verdict(others)
    elif len(others) < len(marked):
        assert verdict(marked) is Status.PASS


@pytest.fixture
def judged(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    judge_once(monkeypatch)

    def run(form: str, ceiling: int = 63, fault: str = "dgx-1-p100-pages-63") -> tuple[int, str]:
        path = tmp_path / "known.toml"
        path.write_text(f'[[acknowledged]]\ncheck = "{PAGES}"\ndevice = "0000:07:00.0"\nceiling = {ceiling}\n'
                        'reason = "on order \\u001b[31m"\nexpiry = 2099-12-31\n')  # fmt: skip
        code = main(["health", "-c", str(path), "--from", fault, "--format", form,
                     *(("--metrics", "all") if form == "prometheus" else ())])  # fmt: skip
        return code, capsys.readouterr().out

    return run


def test_text(judged: Callable[..., tuple[int, str]]) -> None:
    code, text = judged("text")
    assert code == 0
    assert f"\nFAIL {PAGES} GPU1 0000:07:00.0: " in text
    assert "acknowledged until 2099-12-31: on order \N{REPLACEMENT CHARACTER}[31m\n" in text
    assert text.startswith("PASS  no problems found; ")
    assert "Acknowledged: 1 finding, not counted.\n" in text
    code, text = judged("text", 62)
    assert code == 2
    assert "lapsed: 63 pages is worse than its ceiling of 62" in text
    assert "Acknowledged" not in text


def test_json(judged: Callable[..., tuple[int, str]]) -> None:
    code, text = judged("json")
    document = json.loads(text)
    assert complaints("health", document) == []
    (said,) = (each for each in document["findings"] if "acknowledged" in each)
    assert (code, document["verdict"], document["summary"]["fail"], document["summary"]["acknowledged"]) == (
        0, "pass", 0, 1,
    )  # fmt: skip
    assert (said["status"], said["acknowledged"]["expiry"], said["acknowledged"]["lapsed"]) == (
        "fail", "2099-12-31", None,
    )  # fmt: skip
    code, text = judged("json", 62)
    assert complaints("health", json.loads(text)) == []
    assert (code, json.loads(text)["verdict"]) == (2, "fail")


def test_prometheus(judged: Callable[..., tuple[int, str]]) -> None:
    _, text = judged("prometheus")
    labels = f'{{check="{PAGES}",gpu="1",UUID="GPU-[-0-9a-f]+",pci_bus_id="00000000:07:00.0"}}'
    assert re.search(f"^dgxcheck_check_status{labels} 2$", text, re.MULTILINE)
    assert re.search(f"^dgxcheck_check_acknowledged{labels} 1$", text, re.MULTILINE)
    assert "dgxcheck_verdict 0\n" in text
    assert "dgxcheck_check_acknowledged{" not in judged("prometheus", 61)[1]


def test_nagios(judged: Callable[..., tuple[int, str]]) -> None:
    code, text = judged("nagios")
    first, *below = text.splitlines()
    assert (code, first.partition(" - ")[0]) == (0, "DGXCHECK OK")
    assert [line for line in below if line.startswith(f"FAIL {PAGES} GPU1") and "acknowledged until 2099-12-31" in line]


def test_junit(judged: Callable[..., tuple[int, str]]) -> None:
    code, text = judged("junit")
    suite = ElementTree.fromstring(text)
    assert (code, suite.get("failures")) == (0, "0")
    (told,) = (each.text for each in suite.iter("system-out") if each.text and "acknowledged until" in each.text)
    assert told.startswith("fail: 63 retired pages")
    assert ElementTree.fromstring(judged("junit", 61)[1]).get("failures") == "1"


def test_pages(judged: Callable[..., tuple[int, str]]) -> None:
    code, text = judged("html")
    assert (code, text.count("acknowledged until 2099-12-31: on order \N{REPLACEMENT CHARACTER}[31m")) == (0, 1)
    assert "No problems found in the checks that ran" in text
    assert "acknowledged until" not in judged("html", 62)[1]


def test_explained(judged: Callable[..., tuple[int, str]], tmp_path: Path, capsys: Capture) -> None:
    """It is no part of a cause; what it would blame and what to do is still there."""
    judged("text")
    main(["health", "-c", str(tmp_path / "known.toml"), "--from", "dgx-1-p100-pages-63", "--explain", f"{PAGES}/GPU1"])
    page = capsys.readouterr().out
    assert "  Blames:    memory of GPU1 0000:07:00.0\n" in page
    assert "  First:     " in page
    assert "  Sure:" not in page


@pytest.mark.parametrize(("ceiling", "code"), [(15564, 0), (16000, 0), (15563, 1)])
def test_more_of_bar1_taken_is_worse(ceiling: int, code: int, tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(f'[[acknowledged]]\ncheck = "gdr.bar1"\ndevice = "86:00.0"\nceiling = {ceiling}\n'
                    'reason = "a cache"\nexpiry = 2099-12-31\n')  # fmt: skip
    assert main(["health", "-c", str(path), "--only", "gdr.bar1", "--from", "dgx-1-v100-bar1-full"]) == code


@pytest.mark.parametrize(("check", "device", "is_named"), swept([
    (PAGES, "0000:99:00.0", True), (PAGES, "GPU1", True), (PAGES, "", True), ("ecc.aggregate", "", True),
    (PAGES, "00000000:06:00.0", False), (PAGES, "mlx5_0", False), (PAGES, "sda", False), ("gpu.count", "", False),
], 2))  # fmt: skip
def test_a_device_that_is_not_here_is_named(
    check: str, device: str, is_named: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_once(monkeypatch)
    path = tmp_path / "known.toml"
    named = f'device = "{device}"\n' if device else ""
    path.write_text(f'[[acknowledged]]\ncheck = "{check}"\n{named}reason = "r"\nexpiry = 2099-12-31\n')
    argv = ["health", "-c", str(path), "--from", "dgx-1-v100"]
    assert main(argv) == 0
    line = f"Acknowledged, but not present: {device or 'the host'} of {check}.\n"
    assert (line in capsys.readouterr().out) is is_named
    assert main([*argv, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert complaints("health", document) == []
    expected = [{"check": check, "device": device or None}] if is_named else []
    assert document.get("acknowledged_but_not_here", []) == expected
    assert main([*argv, "--only", "thermal"]) == 0
    assert "not present" not in capsys.readouterr().out


def test_few_of_many_are_named(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "known.toml"
    path.write_text("".join(f'[[acknowledged]]\ncheck = "{PAGES}"\ndevice = "03{n}"\nreason = "r"\n'
                            "expiry = 2099-12-31\n" for n in range(9)))  # fmt: skip
    main(["health", "-c", str(path), "--from", "dgx-1-v100"])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "not present" in line)
    assert line.count(PAGES) == 4
    assert line.endswith(" and 5 more.")


WHOLE: dict[str, Any] = {"check": PAGES, "device": "07:00.0", "ceiling": 3, "reason": "r", "expiry": "2027-01-31"}


def test_the_configuration_is_read() -> None:
    (read,) = settings({"acknowledged": [WHOLE]}, "x", IDS).acknowledged
    assert read == Acknowledgement(**WHOLE)
    bare = {key: value for key, value in WHOLE.items() if key not in ("device", "ceiling")}
    (read,) = settings({"acknowledged": [bare]}, "x", IDS).acknowledged
    assert (read.device, read.ceiling) == ("", None)


@pytest.mark.parametrize(("changes", "message"), [
    ({"check": "ecc.retired"}, "acknowledged[1].check: unknown check 'ecc.retired'; did you mean ecc.retire"),
    ({"check": 3}, "acknowledged[1].check: 3 is not a non-empty string"),
    ({"reason": " "}, "acknowledged[1].reason: ' ' is not a non-empty string"),
    ({"reason": None}, "acknowledged[1].reason: None is not a non-empty string"),
    ({"device": ""}, "acknowledged[1].device: '' is not a non-empty string"),
    ({"ceiling": "3"}, "acknowledged[1].ceiling: '3' is not a number"),
    ({"ceiling": True}, "acknowledged[1].ceiling: True is not a number"),
    ({"ceiling": float("nan")}, "acknowledged[1].ceiling: nan is not a number"),
    ({"ceiling": 10**400}, "acknowledged[1].ceiling: a number with many digits is not a number"),
    ({"expiry": "soon"}, "acknowledged[1].expiry: 'soon' is not a date such as 2027-01-31"),
    ({"expiry": "20270131"}, "acknowledged[1].expiry: '20270131' is not a date"),
    ({"expiry": 2027}, "acknowledged[1].expiry: 2027 is not a date"),
    ({"expires": "2027-01-31"}, "acknowledged[1].expires: no such key; did you mean expiry"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        settings({"acknowledged": [WHOLE | changes]}, "x", IDS)
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", ["check", "reason", "expiry"])
def test_what_is_needed_must_be_there(missing: str) -> None:
    with pytest.raises(BadInput, match=rf"acknowledged\[1\]\.{missing}: is missing"):
        settings({"acknowledged": [{key: value for key, value in WHOLE.items() if key != missing}]}, "x", IDS)


@pytest.mark.parametrize("entries", [{}, "all", [1]])
def test_it_is_an_array_of_tables(entries: object) -> None:
    with pytest.raises(BadInput, match="must be an array of tables"):
        settings({"acknowledged": entries}, "x", IDS)
