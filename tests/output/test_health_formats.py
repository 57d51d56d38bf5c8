"""Findings for Prometheus and Nagios, read back by what reads them."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nagiosplugin
import pytest
from checkout import ROOT
from judging import unnamed
from programs import program
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families
from report_of import report_of
from sample import BOXES, SAMPLE, swept

from dgxcheck.checks.engine.finding import Finding, Judgement, Status, Subject
from dgxcheck.cli import main
from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.record import replace
from dgxcheck.output.health.for_programs import nagios, prometheus
from dgxcheck.output.report import HealthReport
from dgxcheck.settings import Settings

STATES = {"skip": -1, "pass": 0, "warn": 1, "fail": 2, "unknown": 3}
CODES = {"pass": 0, "warn": 1, "fail": 2, "unknown": 3, "skip": 4}
WORDS = {"pass": "OK", "warn": "WARNING", "fail": "CRITICAL", "unknown": "UNKNOWN"}


LABELS = {
    "driver.responsive": "unanswered", "thermal.temperature": "temperature", "power.limit": "power_limit",
    "pcie.width": "link_width", "ecc.volatile": "ecc_volatile", "ecc.aggregate": "ecc_aggregate",
    "ecc.retired-pages": "retired_pages", "measure.host-bandwidth": "host_copy", "measure.compute": "compute",
    "measure.memory-bandwidth": "memory_copy", "measure.memory-integrity": "memory_wrong",
}  # fmt: skip
METRICS = {
    "driver.responsive": "dgxcheck_driver_unanswered_questions",
    "power.limit": "dgxcheck_gpu_power_limit_watts",
    "pcie.width": "dgxcheck_gpu_pcie_link_width_lanes",
    "ecc.volatile": "dgxcheck_gpu_ecc_volatile_uncorrected_errors",
    "ecc.aggregate": "dgxcheck_gpu_ecc_aggregate_uncorrected_errors",
}
"""Families by the check behind them; a counter's family has no ``_total`` for the reader used here."""


def performances(text: str) -> dict[str, tuple[float, dict[str, bool]]]:
    """Each label with its value and whether its ranges ring, read as Nagios does."""
    found = {}
    for item in text.split(" "):
        field = re.fullmatch(r"'?([^'=]+)'?=(-?[\d.]+);([^;]*);([^;]*);0(?:;1|;100)?", item)
        assert field is not None, item
        label, value, warn, critical = field.groups()
        ranges = {"warn": warn, "fail": critical}
        rings = {key: not nagiosplugin.Range(each).match(float(value)) for key, each in ranges.items() if each}
        assert label not in found
        found[label] = (float(value), rings)
    return found


PRINTED: dict[tuple[str, str], tuple[int, str]] = {}
"""Exit code and output by what ships and format."""


def health(capsys: pytest.CaptureFixture[str], name: str, form: str) -> tuple[int, str]:
    if (name, form) not in PRINTED:
        every = ["--metrics", "all"] if form in ("prometheus", "openmetrics") else []
        code = main(["health", "--from", name, "--format", form, *every])
        PRINTED[name, form] = (code, capsys.readouterr().out)
    return PRINTED[name, form]


def families(text: str) -> dict[str, Any]:
    return {each.name: each for each in text_string_to_metric_families(text)}


def strictly_read(text: str) -> list[Metric]:
    """By the parser of OpenMetrics."""
    return [*openmetrics_families(text)]  # type: ignore[no-untyped-call]


def sysfs(bus_id: str | None) -> str:
    """``00000000:0A:00.0`` as sysfs spells it; empty for what has no bus id."""
    return as_bdf(bus_id or "") or ""


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=1))
def test_metrics_say_what_the_json_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    due = unnamed(name)
    found = families(health(capsys, name, "prometheus")[1])
    assert all(family.documentation for family in found.values())
    assert [sample.value for sample in found["dgxcheck_up"].samples] == [1]
    assert [sample.value for sample in found["dgxcheck_verdict"].samples] == [STATES[due["verdict"]]]
    counts = {sample.labels["status"]: sample.value for sample in found["dgxcheck_findings"].samples}
    assert counts == {status: due["summary"][status] for status in CODES}
    told = {
        (sample.labels["check"], sysfs(sample.labels.get("pci_bus_id"))): sample.value
        for sample in found["dgxcheck_check_status"].samples
    }
    assert told == {(each["id"], each["subject"]["bdf"] or ""): STATES[each["status"]] for each in due["findings"]}
    # whoever takes the maximum of what is known gets the worst, as far as nothing is acknowledged
    if not any("acknowledged" in each for each in due["findings"]) and due["verdict"] != "unknown":
        states = [sample.value for sample in found["dgxcheck_check_status"].samples]
        assert max(state for state in states if state != STATES["unknown"]) == STATES[due["verdict"]]


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=2))
def test_metrics_carry_what_was_measured_and_no_more(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    due = {
        (METRICS[each["id"]], each["subject"]["bdf"] or ""): each["measured"]
        for each in unnamed(name)["findings"]
        if each["id"] in METRICS and each["measured"] is not None
    }
    text = health(capsys, name, "prometheus")[1]
    told = {
        (family.name, sysfs(sample.labels.get("pci_bus_id"))): sample.value
        for family in text_string_to_metric_families(text)
        if family.name in METRICS.values()
        for sample in family.samples
    }
    assert told == due
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=3))
def test_promtool_finds_no_fault(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [program("promtool"), "check", "metrics"]
    text = health(capsys, name, "prometheus")[1]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", swept(SAMPLE, 9))
def test_openmetrics_has_the_same_series(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Read by a strict parser, which refuses a counter of the classic format, a missing end and clashing names."""

    def series(found: Iterable[Metric]) -> dict[tuple[str, ...], float]:
        samples = (sample for family in found for sample in family.samples)
        return {
            (sample.name, *map(str, sorted(sample.labels.items()))): sample.value
            for sample in samples
            if not sample.name.startswith("dgxcheck_run_")
        }

    text = health(capsys, name, "openmetrics")[1]
    assert text.endswith("\n# EOF\n")
    told = strictly_read(text)
    assert series(told) == series(text_string_to_metric_families(health(capsys, name, "prometheus")[1]))
    kinds = {family.type for family in told if family.name.endswith(("_errors", "_replays", "_messages"))}
    assert kinds == {"counter"}


def test_openmetrics_refuses_the_classic_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"Clashing|counter|EOF"):
        strictly_read(health(capsys, "dgx-1-v100", "prometheus")[1])


def finding(check: str, name: str, measured: float, expected: float | None = None, **parts: Any) -> Finding:
    subject = Subject(kind="gpu", name=name, bdf=None, **parts)
    return Finding(id=check, subject=subject, judgement=Judgement(Status.PASS, "", measured, expected), source="",
                   remedy="")  # fmt: skip


def report(*findings: Finding, settings: Settings = Settings()) -> HealthReport:  # noqa: B008 -- it is frozen
    return report_of(findings, settings=settings)


def test_series_that_look_alike_are_numbered() -> None:
    """A name may differ in what is not shown; a series that stands twice costs the reader the whole file."""
    alike = [finding("ecc.volatile", name, 1) for name in ("GPU\x01", "GPU\x02", "GPU\x03")]
    for family in text_string_to_metric_families(prometheus.render(replace(report(*alike), every_metric=True))):
        labels = [tuple(sample.labels.items()) for sample in family.samples]
        assert len(set(labels)) == len(labels)
        if family.name in ("dgxcheck_check_status", METRICS["ecc.volatile"]):
            assert [dict(each)["device"][-2:] for each in labels] == ["U\N{REPLACEMENT CHARACTER}", "#2", "#3"]


@pytest.mark.parametrize(
    ("check", "settings", "due"),
    [
        ("thermal.temperature", Settings(), ("~:82", "~:86")),
        ("thermal.temperature", Settings(thresholds={"thermal.margin": 2.5}), ("~:84.5", "~:86")),
        ("thermal.temperature", Settings(severities={"thermal.temperature": "warn"}), ("~:82", "")),
        ("ecc.volatile", Settings(), ("", "0")),
        ("ecc.volatile", Settings(severities={"ecc.volatile": "warn"}), ("0", "")),
        ("ecc.retired-pages", Settings(thresholds={"ecc.retired-pages-warn": 3}), ("3", "62")),
        ("ecc.retired-pages", Settings(severities={"ecc.retired-pages": "fail"}), ("", "10")),
        ("power.limit", Settings(), ("87:", "")),
        ("ecc.aggregate", Settings(), ("", "")),
    ],
)
def test_ranges_are_those_of_the_site(check: str, settings: Settings, due: tuple[str, str]) -> None:
    text = nagios.render(report(finding(check, "GPU0", 12345678, 87), settings=settings))
    assert text.split(" ")[-1].split("=")[1] == ";".join(("12345678", *due, "0\n"))


@pytest.mark.parametrize(("name", "label"), [("GPU 1='|\n", "GPU_1_____temperature"), ("GPU\u20ac", "GPU__temperature"),
                                             ("a$b", "'a$b_temperature'")])  # fmt: skip
def test_labels_hold_nothing_that_ends_them(name: str, label: str) -> None:
    text = nagios.render(report(finding("thermal.temperature", name, 40.5)))
    assert text.endswith(f" {label}=40.5;;;0\n")


def test_what_is_no_number_is_no_measurement() -> None:
    for value in (True, float("nan"), float("inf")):
        assert "temperature" not in nagios.render(report(finding("thermal.temperature", "GPU0", value)))


def test_a_metrics_file_is_readable_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        for form, name, mode in (
            ("prometheus", "dgxcheck.prom", 0o644), ("json", "box", 0o600), ("json", "dgxcheck.prom", 0o644),
            ("openmetrics", "box", 0o644),
        ):  # fmt: skip
            main(["health", "--from", "dgx-1-v100", "--format", form, "-o", str(tmp_path / name)])
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode  # what is replaced keeps its mode
    finally:
        os.umask(before)
    assert sorted(os.listdir(tmp_path)) == ["box", "dgxcheck.prom"]


@pytest.mark.parametrize("name", swept(SAMPLE, 9, first=4))
def test_nagios_reads_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    due = unnamed(name)
    code, text = health(capsys, name, "nagios")
    first, _, rest = text.partition("\n")
    line, _, performance = first.partition(" | ")
    assert code == CODES[due["verdict"]]
    assert line.startswith(f"DGXCHECK {WORDS[due['verdict']]} - ")
    assert len(line.encode()) <= 80
    told = performances(performance)
    for label in CODES:
        value, alarms = told.pop(label)
        assert due["summary"][label] == value
        assert alarms == {"warn": {"warn": value > 0}, "fail": {"fail": value > 0}}.get(label, {})
    for key, number in (("score", "total"), ("coverage", "coverage")):
        expected = None if due["score"] is None else due["score"][number]
        assert told.pop(key, (None, {})) == (expected, {})
    for each in due["findings"]:
        label = LABELS.get(each["id"], "")
        if label and each["measured"] is not None:
            name = "" if each["subject"]["kind"] == "host" else f"{each['subject']['name']}_"
            value, alarms = told.pop(f"{name}{label}")
            assert value == each["measured"]
            # what Nagios makes of number and ranges is what the check made of it
            assert {key for key, rings in alarms.items() if rings} - {"warn"} == {each["status"]} - {"pass", "warn"}
            # one double-bit page warns, whatever the total
            of_total = each["id"] != "ecc.retired-pages"
            assert not alarms or not of_total or alarms.get("warn", False) >= (each["status"] == "warn")
    assert told == {}
    assert "|" not in rest
    bad = [each for each in due["findings"] if each["status"] in ("warn", "fail", "unknown")]
    assert len(rest.splitlines()) == len(bad)
    for each in bad:
        assert f"{each['message']}; do: {each['remedy']}" in rest


def test_a_program_s_form_is_never_coloured_or_broken(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "prometheus", "openmetrics", "nagios", "junit"):
        main(["health", "--from", "dgx-1-v100-hot", "--format", form, "--color", "always"])
        assert "\033" not in capsys.readouterr().out


SERIES = {
    "dgx-1-v100": 1200, "dgx-2": 2050, "dgx-a100": 2100, "dgx-h100": 2400, "dgx-b200": 2450, "dgx-station-v100": 500,
}  # fmt: skip
"""As dgxcheck-health(1) states it, to the next fifty."""


@pytest.mark.parametrize("name", swept(BOXES, (*SERIES, *BOXES[::6])))
def test_the_number_of_series_is_as_stated(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "man" / "dgxcheck-health.1").read_text(encoding="utf-8")
    text = health(capsys, name, "prometheus")[1]
    series = sum(not line.startswith("#") for line in text.splitlines())
    limit = SERIES.get(name, max(SERIES.values()))
    assert f" {limit} on a" in page.replace("\n", " ")
    assert series <= limit
    assert name not in SERIES or series > limit - 50
