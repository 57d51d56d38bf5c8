"""JUnit reports, read back by junitparser and by an XML reader that takes nothing it should not."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import junitparser
import pytest
from judging import unnamed
from report_of import report_of
from sample import SAMPLE, swept

from dgxcheck.checks.engine.finding import Evidence, Finding, Judgement, Status, Subject
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.health.for_programs import junit
from dgxcheck.source.protocol import Origin

RESULTS = {"fail": "Failure", "unknown": "Error", "skip": "Skipped", "warn": "Failure"}
EVIL = "\x00\x08\x1b[31m\x0b\x85\u2028\u202e\ud800\ufffe\uffff ]]> <a b='\"'>&lt;&#0; \r\n\t"


def health(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    return main(["health", *argv]), capsys.readouterr().out


def suite_of(text: str) -> Any:
    (suite,) = junitparser.JUnitXml.fromstring(text.encode())
    return suite


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=3))
def test_it_says_what_the_json_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    due = unnamed(name)
    code, text = health(capsys, "--from", name, "--format", "junit")
    suite = suite_of(text)
    count = due["summary"]
    assert (suite.tests, suite.failures) == (len(due["findings"]), count["fail"] + count["warn"])
    assert (suite.errors, suite.skipped) == (count["unknown"], count["skip"])
    assert suite.name == f"{due['host']} {due['level']}"
    said = {each.name: each.value for each in suite.properties()}
    assert said["verdict"] == due["verdict"]
    assert said["exit_code"] == str(code)
    assert said["tool_version"] == due["tool_version"]
    serials = {each["subject"]["serial"] for each in due["findings"] if each["subject"]["serial"]}
    assert {value for key, value in said.items() if key.startswith("serial ")} == serials
    cases = [*suite]
    assert len({case.name for case in cases}) == len(cases)
    for case, each in zip(cases, due["findings"], strict=True):
        assert case.classname == f"health.{each['id'].partition('.')[0]}"
        assert case.name.startswith(each["id"])
        assert (each["subject"]["bdf"] or "") in case.name
        results = [type(result).__name__ for result in case.result]
        assert results == ([RESULTS[each["status"]]] if each["status"] in RESULTS else [])
        if each["status"] == "skip":
            assert case.result[0].message == f"{each['reason']}: {each['message']}"
        elif each["status"] in RESULTS:
            assert case.result[0].message == each["message"]
            kind = "warning" if each["status"] == "warn" else each["status"]
            assert case.result[0].type == kind
        else:
            assert each["message"] in case.system_out
        if each["status"] in ("warn", "fail"):
            after_drain = re.sub("^drain(?: and stop jobs)?, then ", "", each["remedy"])  # itself a step there
            assert after_drain in case.result[0].text
            assert all(evidence["where"] in case.result[0].text for evidence in each["evidence"])


@pytest.mark.parametrize("fail_on", ["unknown", "fail"])
def test_a_warning_passes_where_the_exit_code_does_not_tell_it(
    fail_on: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("--from", "dgx-1-v100-persistence-off", "--format", "junit", "--fail-on", fail_on)
    code, text = health(capsys, *argv)
    suite = suite_of(text)
    assert (code, suite.failures, suite.errors) == (0, 0, 0)
    (warned,) = [case.system_out for case in suite if case.system_out and "warn: " in case.system_out]
    assert warned.startswith("warn: persistence mode is off")
    assert "1. change setting: nvidia-smi -i" in warned


def test_hostile_text_is_harmless() -> None:
    evil = Subject(kind="gpu", name=EVIL, bdf=EVIL, serial=EVIL, part=EVIL)
    peer = Subject(kind="gpu", name=EVIL, bdf=None)
    findings = [
        Finding(id="gpu.lost", subject=subject, source=EVIL, remedy=EVIL,
                judgement=Judgement(status, EVIL, EVIL, EVIL, EVIL, (Evidence(EVIL, {EVIL: [EVIL]}),)))
        for subject in (evil, Subject(kind="gpu", name="GPU1", bdf=None, peer=peer))
        for status in Status
    ]  # fmt: skip
    for host in (EVIL, Missing(Gap.DENIED, EVIL, EVIL)):
        text = junit.render(report_of(findings, origin=Origin("recording", EVIL), host={"host": host}))
        assert text.isascii()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f]|&#x?0*[0-8bcBC]?;|&#5529[56];|&#6553[45];", text)
        root = ElementTree.fromstring(text)
        assert {each.tag for each in root.iter()} <= {
            "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped",
            "system-out",
        }  # fmt: skip
        assert len([*suite_of(text)]) == len(findings)
        message = next(each.get("message") for each in root.iter("failure"))
        assert message is not None
        assert "]]> <a b='\"'>&lt;&#0; " in message


def test_nothing_to_judge_is_a_report_too(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    (tmp_path / "sys").mkdir()
    code, text = health(capsys, "--from", str(tmp_path), "--format", "junit")
    assert code == 3
    said = {each.name: each.value for each in suite_of(text).properties()}
    assert said["verdict"] == "unknown"
