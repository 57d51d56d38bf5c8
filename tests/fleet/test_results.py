"""Results are read from both formats of health, and a fault stays until a newer result proves it right."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from datetime import datetime
from itertools import product
from pathlib import Path
from time import gmtime, strftime, time
from typing import Any

import pytest
from many import Document, result
from sample import swept
from seam import judge_once

from dgxcheck.cli import main
from dgxcheck.fleet import history
from dgxcheck.fleet.document import NotAResult, SharedStrings, result_of
from dgxcheck.fleet.judge import Fleet, KindOfFault, judge
from dgxcheck.fleet.reading import Unread, documents
from dgxcheck.limits import FLEET_IDLE_LINES
from dgxcheck.output.fleet.schedulers import may_return, reason_of
from dgxcheck.output.fleet.text import common
from dgxcheck.source.state_file import DATE, is_date

SICK = "dgx-1-v100-bar1-small"
KEY = "pcie.bar1/0000:0a:00.0"


def written(tmp_path: Path, *documents: Document) -> str:
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    return str(tmp_path)


NOW = 1_795_000_000.0
LIVE = {"kind": "live"}


def dated(seconds: float) -> str:
    return strftime(DATE, gmtime(seconds))


def at(hour: float, spec: str = "dgx-1-v100", **members: Any) -> Document:
    """Of the machine itself, at an hour of the half day before NOW."""
    members = {"host": "dgx001", "generated_at": dated(NOW - 3600 * (12 - hour)), "source": LIVE, **members}
    return result(spec, **members)


@pytest.mark.parametrize("spec", swept(["dgx-1-v100", SICK, "dgx-a100", "dgx-2-nvlink-slow"], 2, first=1))
def test_both_formats_say_the_same(
    spec: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_once(monkeypatch)
    found = []
    for form in ("json", "jsonl"):
        assert main(["health", "--from", spec, "--format", form, "--fail-on", "never"]) == 0
        found.append(result_of(json.loads(capsys.readouterr().out), SharedStrings()))
    (whole, figures), (line, same) = found
    assert figures == same
    assert (whole.verdict, whole.faults, whole.passed, whole.skipped) == (
        line.verdict, line.faults, line.passed, line.skipped,
    )  # fmt: skip


def test_a_line_is_small() -> None:
    line = json.dumps(result("dgx-1-v100"))
    assert len(line) < 40_000
    assert len(gzip.compress(line.encode())) < 5_000


OTHER = {"pcie.bar1/0000:06:00.0": None}
HISTORIES: list[tuple[list[Document], str, int]] = [
    ([at(1, SICK)], "fail", 1),
    ([at(1, SICK), at(2)], "pass", 0),
    ([at(2), at(1, SICK)], "pass", 0),
    ([at(1), at(2, SICK)], "fail", 1),
    ([at(1, SICK), at(2, level="quick")], "fail", 1),
    ([at(1, SICK, level="quick"), at(2)], "pass", 0),
    ([at(1, SICK, level="extended"), at(2), at(3, level="quick")], "fail", 1),
    ([at(1, SICK, level="extended"), at(2, SICK), at(3)], "fail", 1),
    ([at(1, SICK), at(2, passed={"gpu.lost/0000:06:00.0": None})], "fail", 1),
    ([at(1, SICK), at(2, passed=OTHER)], "pass", 0),
    ([at(1, SICK), at(2, passed=OTHER, skipped={"no-permission": ["pcie.bar1"]})], "fail", 1),
]  # fmt: skip


@pytest.mark.parametrize(("documents", "verdict", "faults"), HISTORIES)
def test_a_fault_stays_until_it_is_proven_right(
    documents: list[Document], verdict: str, faults: int, tmp_path: Path
) -> None:
    fleet = judge([written(tmp_path, *documents)], now_s=NOW)
    node = fleet.nodes["dgx001"]
    assert (node.verdict, len(node.faults)) == (verdict, faults)
    assert fleet.results == len(documents)


FRESH = {"generated_at": dated(time()), "source": LIVE}


def test_the_gate_holds_what_is_not_proven_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sick = result(SICK, host="dgx001", level="extended", source=LIVE, generated_at=dated(time() - 60))
    folder = written(tmp_path, sick, result("dgx-1-v100", host="dgx001", **FRESH),
                     result("dgx-a100", host="dgx002", **FRESH))  # fmt: skip
    assert main(["fleet", "--gate", folder]) == 2
    held, clear = capsys.readouterr().out.split("dgx002")
    assert held.startswith(f"dgx001: hold: {KEY} found by level extended at")
    assert clear.startswith(": return")
    assert main(["fleet", "--gate", "-n", "dgx002", folder]) == 0
    assert main(["fleet", "--gate", "-n", "dgx003", folder]) == 2


@pytest.mark.parametrize("claim", [
    {"generated_at": "9999-12-31T00:00:00Z"}, {"generated_at": dated(NOW + 3600)}, {"generated_at": "zzz"},
    {"generated_at": "2026-13-01T00:00:00Z"}, {"generated_at": "2026-1-1T0:0:0Z"}, {"source": {"kind": "recording"}},
    {"source": None}, {"source": "live"}, {"passed": {}}, {"found": result(SICK)["found"]},
    {"found": [{**result(SICK)["found"][0], "status": "FAIL"}]},
])  # fmt: skip
def test_a_claim_of_a_pass_outlives_no_fault(claim: dict[str, Any], tmp_path: Path) -> None:
    """A forged or mistaken result beside today's fail neither counts nor goes unsaid."""
    fleet = judge([written(tmp_path, at(11, SICK), at(12, **claim))], now_s=NOW)
    assert (fleet.nodes["dgx001"].verdict, len(fleet.unread)) == ("fail", 1)
    assert not may_return(fleet)


def test_at_one_date_the_worst_counts(tmp_path: Path) -> None:
    for both in ([at(1, SICK), at(1)], [at(1), at(1, SICK)]):
        assert judge([written(tmp_path, *both)], now_s=NOW).nodes["dgx001"].verdict == "fail"


def test_a_member_that_stands_twice_is_named(tmp_path: Path) -> None:
    """Readers of JSON differ in which of the two counts."""
    twice = json.dumps(at(12))[:-1] + ', "verdict": "pass"}'
    (tmp_path / "twice.jsonl").write_text(f"{json.dumps(at(11, SICK))}\n{twice}\n")
    fleet = judge([str(tmp_path)], now_s=NOW)
    assert (fleet.nodes["dgx001"].verdict, [each.why for each in fleet.unread]) == ("fail", ["duplicate key 'verdict'"])


def test_a_date_is_what_fromisoformat_takes_in_that_form() -> None:
    years, days = (999, 1000, 1900, 2000, 2026, 2028, 2100, 9999), (0, 1, 28, 29, 30, 31, 32)
    for year, month, day in product(years, range(14), days):
        for clock in ("00:00:00", "23:59:60", "24:00:00", "12:60:00", "1:00:00"):
            text = f"{year:04}-{month:02}-{day:02}T{clock}Z"
            try:
                due = datetime.fromisoformat(text[:-1]).strftime(DATE) == text
            except ValueError:
                due = False
            assert is_date(text) is due, text


def test_an_old_result_proves_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path, at(1), at(12, host="dgx002"))
    fleet = judge([folder], max_age_s=3600, now_s=NOW)
    assert {name: (node.verdict, node.stale) for name, node in fleet.nodes.items()} == {
        "dgx001": ("unknown", True), "dgx002": ("pass", False),
    }  # fmt: skip
    assert not may_return(fleet)
    assert [reason_of(node) for node in fleet.nodes.values()] == [
        "dgxcheck: unknown; level default", "dgxcheck: pass; level default",
    ]  # fmt: skip
    assert may_return(judge([folder], now_s=NOW))


def test_a_recording_drains_no_node_and_returns_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, result(SICK, host="dgx001"))
    assert main(["fleet", "--gate", folder]) == 2
    assert "its newest result is not of the machine itself" in capsys.readouterr().out
    assert main(["fleet", "--format", "drain-reason", "--fail-on", "never", folder]) == 0
    assert capsys.readouterr().out == "dgx001\tdgxcheck: unknown; level default\n"


def test_acknowledged_findings_do_not_count() -> None:
    document = result(SICK)
    for finding in document["found"]:
        finding["acknowledged"] = "known"
    assert result_of(document, SharedStrings())[0].faults == ()


def test_files_of_every_kind_are_read(tmp_path: Path) -> None:
    one, two, three = (result("dgx-1-v100", host=name) for name in ("a1", "a2", "a3"))
    (tmp_path / "rack").mkdir()
    (tmp_path / "rack" / "a1.json").write_text(json.dumps(one, indent=2))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(f"{json.dumps(two)}\n{json.dumps(three)}\n".encode()))
    (tmp_path / "notes.txt").write_text("not for us")
    fleet = judge([str(tmp_path)], ["a1", "a4"])
    assert set(fleet.nodes) == {"a1", "a2", "a3"}
    assert (fleet.silent, fleet.unread, fleet.verdict) == (("a4",), (), "unknown")


def collected(name: str, results: Sequence[Document]) -> str:
    """As what collects results prints or writes them."""
    lines = [(str(each["host"]), json.dumps(each)) for each in results]
    return {
        "clush": "".join(f"{host}: {line}\n" for host, line in lines),
        "srun -l": "".join(f"{number:>2}: {line}\n" for number, (_, line) in enumerate(lines)),
        "ansible": "".join(f"{host} | CHANGED | rc=0 >>\n{line}\n" for host, line in lines),
        "clush -b": "".join(f"{'-' * 15}\n{host}\n{'-' * 15}\n{line}\n" for host, line in lines),
        "kubectl logs --prefix": "".join(f"[pod/dgxcheck-{host}/dgxcheck] {line}\n" for host, line in lines),
        "docker logs -t": "".join(f"2026-11-30T22:00:00.123456789Z {line}\n" for _, line in lines),
        "docker compose": "".join(f"dgxcheck-{number}  | {line}\n" for number, (_, line) in enumerate(lines)),
        "stern": "".join(f"dgxcheck-x7k2p dgxcheck {line}\n" for _, line in lines),
        "journald": "".join(f"Nov 30 22:00:00 {host} dgxcheck[123]: {line}\n" for host, line in lines),
        "ansible-playbook": "".join(f'ok: [{host}] => {{\n    "msg": {line}\n}}\n' for host, line in lines),
        "ansible stdout": "".join(
            f'ok: [{host}] => {{\n    "out.stdout": {json.dumps(line)}\n}}\n\n' for host, line in lines),
        "ansible stdout, cut": "".join(
            f'ok: [{host}] => {{\n    "rc": 0,\n    "out.stdout": {json.dumps(line)}\n' for host, line in lines),
        "ansible stdout, tabs": "".join(
            f'ok: [{host}] => {{\n\t"out.stdout": {json.dumps(line)}\n}}\n' for host, line in lines),
        "ansible stdout, flat": "".join(
            f'ok: [{host}] => {{\n"changed": false,\n"out.stdout": {json.dumps(line)}\n}}\n' for host, line in lines),
        "ansible stdout, grep": "".join(f'    "out.stdout": {json.dumps(line)}\n' for _, line in lines),
        "in strings": "".join(f"{json.dumps(line)}\n" for _, line in lines),
        "ansible-playbook -v": "".join(
            f"fatal: [{host}]: FAILED! => {json.dumps({'rc': 2, 'stdout': line, 'stdout_lines': [line]})}\n"
            for host, line in lines),
        "ansible var": "".join(
            f"ok: [{host}] => {json.dumps({'out': {'cmd': [], 'stdout': line, 'stdout_lines': [line]}}, indent=4)}\n\n"
            for host, line in lines),
        "ansible from_json": "".join(
            f"{host} | SUCCESS => {json.dumps({'changed': False, 'msg': json.loads(line)}, indent=4)}\n"
            for host, line in lines),
        "salt": "".join(f"{host}:\n    {line}\n" for host, line in lines),
        "jq -s": json.dumps([json.loads(line) for _, line in lines]),
        "jq -s, set apart": "\t[     " + ", ".join(line for _, line in lines) + "]",
        "by name, set apart": "  {" + ", ".join(f'"{host}": {line}' for host, line in lines) + "}\n",
        "by name": json.dumps({host: json.loads(line) for host, line in lines}, indent=1),
    }[name]


@pytest.mark.parametrize("name", [
    "clush", "clush -b", "srun -l", "ansible", "kubectl logs --prefix", "docker logs -t", "docker compose", "stern",
    "journald", "ansible-playbook", "ansible stdout", "ansible stdout, cut", "ansible stdout, tabs",
    "ansible stdout, flat", "ansible stdout, grep", "in strings", "ansible-playbook -v", "ansible var",
    "ansible from_json", "salt",
    "jq -s", "jq -s, set apart", "by name", "by name, set apart",
])  # fmt: skip
def test_results_are_read_as_they_were_collected(name: str, tmp_path: Path) -> None:
    text = collected(name, [at(1, host=f"dgx{number:03}") for number in (1, 2, 12)])
    (tmp_path / "x.json").write_text(text)
    fleet = judge([str(tmp_path)], now_s=NOW)
    assert (list(fleet.nodes), fleet.results, fleet.unread) == (["dgx001", "dgx002", "dgx012"], 3, ())


@pytest.mark.parametrize("name", [
    "clush", "clush -b", "ansible", "ansible-playbook", "ansible from_json", "salt", "by name",
])  # fmt: skip
def test_no_node_prints_the_result_of_another(name: str, tmp_path: Path) -> None:
    text = collected(name, [at(1, host="dgx001"), at(1, host="dgx002")])
    (tmp_path / "x.json").write_text(text.replace('"host": "dgx002"', '"host": "dgx001"'))
    fleet = judge([str(tmp_path)], now_s=NOW)
    assert [*fleet.nodes] == ["dgx001"]
    assert [each.why for each in fleet.unread] == ["dgx002 printed a result of dgx001"]


ADVICE = "not a JSON document; collect what dgxcheck health --format jsonl prints"


@pytest.mark.parametrize(("text", "unread"), [
    ("dgx007:\ndgx001:\n    {}\n", ["dgx007 printed nothing"]),
    ("dgx001:\n    {}\ndgx007:\n", ["dgx007 printed nothing"]),
    ("dgx007 | CHANGED | rc=0 >>\n\ndgx001 | CHANGED | rc=0 >>\n{}\n", ["dgx007 printed nothing"]),
    ("Output:\n{}\n", [ADVICE]), ("stdout: \n{}\n", [ADVICE]),
    ("{}\n}}\n}}\n", [ADVICE, "not a JSON document"]),
    ('ok: [dgx001] => {{\n    "msg": {}\n}}\n}}\n', [ADVICE]),
    ("dgx001:\n    {}\n  [\n", [ADVICE]),
    ('{}\nok: [dgx007] => {{\n    "msg": "x"\n}}\n', ["dgx007: what Ansible printed of it holds no result"]),
    ('ok: [dgx007] => {{\n    "msg": {{\n{}\n', ["not a JSON document"]),
    ("dgx001:\n    {}\n\ndgx001:\n    {}\n", []),
])  # fmt: skip
def test_what_stands_around_results_is_none(text: str, unread: list[str], tmp_path: Path) -> None:
    line = json.dumps(at(1, host="dgx001"))
    (tmp_path / "x.json").write_text(text.format(line, line))
    fleet = judge([str(tmp_path)], now_s=NOW)
    assert (list(fleet.nodes), [each.why for each in fleet.unread]) == (["dgx001"], unread)


BROKEN = [
    b"", b"{", b"}\n", b"results:\n", b"[1]\n", b"null\n", b'{"schema": "dgxcheck/topo/1"}\n', b"\x1f\x8bbroken", b"{}",
    b"\xff\xfe\n", b"[" * 100_000, b'{"a": NaN}\n', b'"\\ud800"\n', b' "a": "{\\"schema\\ud800"\n',
    b"h | SUCCESS => {\n}\n", b'h | SUCCESS => {"a": "{\\"\\ud800"}\n',
]  # fmt: skip


@pytest.mark.parametrize("data", BROKEN)
def test_a_broken_file_hides_no_other(data: bytes, tmp_path: Path) -> None:
    folder = written(tmp_path, at(1))
    (tmp_path / "broken.json").write_bytes(data)
    fleet = judge([folder], now_s=NOW)
    assert (list(fleet.nodes), len(fleet.unread), fleet.verdict) == (["dgx001"], 1, "unknown")


def test_a_broken_line_hides_no_other(tmp_path: Path) -> None:
    lines = [json.dumps(at(1, host=name)) for name in "abc"]
    for number in range(3):
        (tmp_path / "x.jsonl").write_text("\n".join([*lines[:number], lines[number][:-1], *lines[number + 1 :]]))
        fleet = judge([str(tmp_path)], now_s=NOW)
        assert (len(fleet.nodes), [each.why for each in fleet.unread]) == (2, ["not a JSON document"])


def test_packed_newlines_hold_nothing_up(tmp_path: Path) -> None:
    folder = written(tmp_path, at(1))
    (tmp_path / "newlines.jsonl.gz").write_bytes(gzip.compress(b"\n" * (FLEET_IDLE_LINES + 2)))
    fleet = judge([folder], now_s=NOW)
    assert [each.why for each in fleet.unread] == [
        f"more than {FLEET_IDLE_LINES} lines hold no result; not read from line {FLEET_IDLE_LINES + 1} on"
    ]


def test_a_line_that_repeats_the_one_before_is_read_once(tmp_path: Path) -> None:
    found = documents([written(tmp_path, at(1), at(1), at(2), at(1))])
    assert [each[1] for each in found if not isinstance(each, Unread)] == [at(1), at(2), at(1)]


def test_repeated_results_are_no_idle_lines(tmp_path: Path) -> None:
    short = [{"schema": at(1)["schema"], "host": name} for name in "ab"]
    again, other = (json.dumps(each) + "\n" for each in short)
    (tmp_path / "results.jsonl").write_text(again * (FLEET_IDLE_LINES + 5) + other)
    found = documents([str(tmp_path)])
    assert [each if isinstance(each, Unread) else each[1] for each in found] == short


def test_damaged_lines_that_repeat_are_counted(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("{junk\n" * 20)
    why = [each.why for each in documents([str(tmp_path)]) if isinstance(each, Unread)]
    assert why == ["not a JSON document"] * 3 + ["17 more lines hold no result"]
    (tmp_path / "results.jsonl").write_text("PASS  DGX H100\n")
    (unread,) = (each for each in documents([str(tmp_path)]) if isinstance(each, Unread))
    assert unread.why == "not a JSON document; collect what dgxcheck health --format jsonl prints"


def test_of_a_file_with_more_results_than_a_fleet_has_the_first_are_read(tmp_path: Path) -> None:
    found = documents([written(tmp_path, *(at(1, host=name) for name in "abcdef"))], most=3)
    assert [each.why for each in found if isinstance(each, Unread)] == ["more than 3 results; not read from line 5 on"]


SCORES: list[Any] = [-1, 100.5, 1e308, True, "90", [], {}, {"total": -1}, {"total": "x"}]


def _without(name: str) -> Document:
    return {key: value for key, value in at(1).items() if key != name}


@pytest.mark.parametrize(
    "document",
    [
        *map(_without, ("host", "generated_at", "level", "verdict", "passed", "found")),
        *(at(1, score=score) for score in SCORES),
        at(1, verdict="fine"), at(1, passed=[]), at(1, found=[1]), at(1, found=[{"status": "fail"}]), at(1, host=None),
    ],
)  # fmt: skip
def test_what_breaks_its_schema_is_named(document: Document) -> None:
    with pytest.raises(NotAResult, match=r"'\w+' "):
        result_of(document, SharedStrings())


def test_nothing_to_judge_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judge([str(tmp_path)]).verdict == "unknown"
    assert main(["fleet", str(tmp_path)]) == 3
    assert capsys.readouterr().out == "UNKNOWN: 0 nodes: no result\n"
    assert main(["fleet", str(tmp_path / "nothing")]) == 3
    assert "no such file or folder" in capsys.readouterr().err


def test_a_common_fault_is_marked(tmp_path: Path) -> None:
    documents = [result(SICK if number < 4 else "dgx-1-v100", host=f"n{number}") for number in range(20)]
    fleet: Fleet = judge([written(tmp_path, *documents)])
    assert [(kind.check, len(kind.nodes), kind.common) for kind in fleet.kinds] == [("pcie.bar1", 4, True)]


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, at(1))
    walk = os.walk

    def denied(top: str, onerror: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", f"{top}/rack2"))
        return walk(top)

    monkeypatch.setattr(os, "walk", denied)
    fleet = judge([folder], now_s=NOW)
    assert (list(fleet.nodes), [each.where for each in fleet.unread]) == (["dgx001"], [f"{folder}/rack2"])
    assert fleet.verdict == "unknown"


def test_options_of_w_alone_are_refused_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "--timeout", "5", written(tmp_path, at(1))]) == 3
    assert "--timeout is valid only with -w" in capsys.readouterr().err


def test_an_age_is_for_results_that_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "-w", "dgx[001-002]", "--max-age", "1h"]) == 3
    assert "--max-age is for results that are there" in capsys.readouterr().err


def test_a_machine_that_lost_gpus_does_not_pass(tmp_path: Path) -> None:
    """Also where its own memory of them is gone; until they are back or the site acknowledges it."""
    eight: dict[str, Any] = {"gpus": {"Tesla K80": 8}}
    six: dict[str, Any] = {"gpus": {"Tesla K80": 6}}
    passed = {"host.inventory/GPU": None}
    accepted = [{"key": "host.inventory/GPU", "status": "fail", "fault": "gpu-missing", "acknowledged": "sold"}]
    for results, message in (
        ([at(1, **eight), at(2, **six)], "6 GPUs, was 8 on 2026-11-18"),
        ([at(2, **six), at(1, **eight)], "6 GPUs, was 8 on 2026-11-18"),
        ([at(1, **eight), at(2, **six, passed=passed), at(3, **six, passed=passed)], "6 GPUs, was 8 on 2026-11-18"),
        ([at(1, **eight), at(2, **six), at(3, **eight)], ""),
        ([at(1, **eight), at(2, **six, found=accepted), at(3, **six)], ""),
        ([at(1, **eight), at(2, gpus={})], ""),
        ([at(1, **six), at(2, **eight)], ""),
    ):
        (node,) = judge([written(tmp_path, *results)], now_s=NOW).nodes.values()
        faults = [each.fault.message for each in node.faults if each.fault.check == "host.inventory"]
        assert faults == ([message] if message else [])
        assert node.verdict == ("fail" if message else "pass")


def test_a_domain_behind_its_name_makes_no_other_node(tmp_path: Path) -> None:
    there = written(tmp_path, at(1, SICK, host="dgx001.site"), at(2, host="dgx001"), at(1, host="dgx002.site"))
    fleet = judge([there], ["dgx001", "dgx002"], now_s=NOW)
    assert (*fleet.nodes, *fleet.silent) == ("dgx001", "dgx002")
    assert fleet.verdict == "pass"
    assert [*judge([there], ["dgx001.site"], now_s=NOW).nodes] == ["dgx001.site", "dgx002.site"]


@pytest.mark.parametrize(("found", "expected", "named", "in_history"), [
    (["DGX001.site", "dgx001"], [], "dgx001", "dgx001"), (["DGX001.site", "dgx001"], ["DGX001"], "DGX001", "dgx001"),
    (["DGX001", "dgx001"], [], "dgx001", "dgx001"), (["DGX1", "Dgx1"], ["dgx1.site"], "dgx1.site", "DGX1"),
    (["DGX001.site", "dgx001.SITE"], ["dgx001"], "dgx001", "DGX001.site"),
])  # fmt: skip
def test_capitals_make_no_other_node(
    found: list[str], expected: list[str], named: str, in_history: str, tmp_path: Path
) -> None:
    there = written(tmp_path, at(1, SICK, host=found[0]), at(2, host=found[1]))
    fleet = judge([there], expected, now_s=NOW)
    assert (*fleet.nodes, *fleet.silent) == (named,)
    assert fleet.verdict == "pass"
    assert [*history.read([there], NOW).nodes] == [in_history]


def test_a_file_is_called_after_a_node_in_capitals_or_not(tmp_path: Path) -> None:
    for name, host in (("DGX001-0.json", "dgx001"), ("dgx002-0.json", "DGX001")):
        (tmp_path / name).write_text(json.dumps(at(1, host=host)))
    fleet = judge([str(tmp_path)], ["dgx001", "dgx002"], now_s=NOW)
    assert ([*fleet.nodes], fleet.silent) == (["dgx001"], ("dgx002",))
    assert [each.why for each in fleet.unread] == ["a result of DGX001 in a file of dgx002"]


def test_hosts_of_two_domains_are_two_nodes(tmp_path: Path) -> None:
    there = written(tmp_path, at(1, host="dgx001.east"), at(1, host="dgx001.west"))
    assert judge([there], ["dgx001"], now_s=NOW).silent == ("dgx001",)


@pytest.mark.parametrize(("members", "why"), [
    ({"schema": "dgxcheck/result/9"}, "is of another version of dgxcheck"),
    ({"schema": "dgxcheck/health/0"}, "is of another version of dgxcheck"),
    ({"schema": "dgxcheck/topo/1"}, "not a result"),
    ({"host": "x" * 257}, "is longer than 256 characters"),
])  # fmt: skip
def test_what_is_no_result_here_is_told_as_what_it_is(members: Document, why: str, tmp_path: Path) -> None:
    (unread,) = judge([written(tmp_path, {**at(1), **members})], now_s=NOW).unread
    assert why in unread.why


@pytest.mark.parametrize(("fault", "words"), [
    ("overheating", "the switches, power and air"), ("cpu-clock", "image, driver, settings and profile first"),
    ("", "image, driver, settings and profile first"),
])  # fmt: skip
def test_where_to_look_for_one_reason(fault: str, words: str) -> None:
    assert words in common(KindOfFault("check", fault, "warn", {}, True))
    assert not common(KindOfFault("check", fault, "warn", {}, False))
