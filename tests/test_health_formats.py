"""Findings for Prometheus and Nagios, read back by what reads them."""

from __future__ import annotations

import json
import re
from typing import Any

import nagiosplugin
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dgxcheck.cli import main
from dgxcheck.source.library import shipped

NAMES = [name for name, _ in shipped()]
CODES = {"pass": 0, "warn": 1, "fail": 2, "unknown": 3, "skip": 4}
WORDS = {"pass": "OK", "warn": "WARNING", "fail": "CRITICAL", "unknown": "UNKNOWN"}


def health(capsys: pytest.CaptureFixture[str], name: str, form: str) -> tuple[int, str]:
    code = main(["health", "--from", name, "--format", form])
    return code, capsys.readouterr().out


def document(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(health(capsys, name, "json")[1])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_metrics_say_what_the_json_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    due = document(capsys, name)
    families = {each.name: each for each in text_string_to_metric_families(health(capsys, name, "prometheus")[1])}
    assert all(family.documentation and family.type == "gauge" for family in families.values())
    assert [sample.value for sample in families["dgxcheck_up"].samples] == [1]
    assert [sample.value for sample in families["dgxcheck_verdict"].samples] == [CODES[due["verdict"]]]
    counts = {sample.labels["status"]: sample.value for sample in families["dgxcheck_findings"].samples}
    assert counts == {status: due["summary"][status] for status in CODES}
    told = {
        (sample.labels["check"], sample.labels["pci_bus_id"]): sample.value
        for sample in families["dgxcheck_check_status"].samples
    }
    assert told == {(each["id"], each["subject"]["bdf"] or ""): CODES[each["status"]] for each in due["findings"]}


@pytest.mark.parametrize("name", NAMES)
def test_nagios_reads_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    due = document(capsys, name)
    code, text = health(capsys, name, "nagios")
    first, _, rest = text.partition("\n")
    line, _, performance = first.partition(" | ")
    assert code == CODES[due["verdict"]]
    assert line.startswith(f"DGXCHECK {WORDS[due['verdict']]} - ")
    assert len(line.encode()) <= 80
    fields = [re.fullmatch(r"(\w+)=(\d+);([^;]*);([^;]*);0", item) for item in performance.split(" ")]
    for field in fields:
        assert field is not None
        label, value, warn, critical = field.groups()
        assert due["summary"][label] == int(value)
        alarms = [not nagiosplugin.Range(each).match(int(value)) for each in (warn, critical) if each]
        assert alarms == ([int(value) > 0] if label in ("warn", "fail") else [])
    assert "|" not in rest
    bad = [each for each in due["findings"] if each["status"] in ("warn", "fail", "unknown")]
    assert len(rest.splitlines()) == len(bad)
    for each in bad:
        assert f"{each['message']}; do: {each['remedy']}" in rest


def test_a_program_s_form_is_never_coloured_or_broken(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("json", "prometheus", "nagios"):
        main(["health", "--from", "dgx-1-v100-hot", "--format", form, "--color", "always"])
        assert "\033" not in capsys.readouterr().out
