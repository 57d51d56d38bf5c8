"""The Python API: any source, every option of a request, and the same answers as the command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dgxcheck.assessment import Assessment, BadInput, Request, assess, examine
from dgxcheck.assessment.progress import interruptible
from dgxcheck.checks.engine.finding import Status
from dgxcheck.cli import main
from dgxcheck.components.component import Component
from dgxcheck.settings import Settings
from dgxcheck.source.recording.load import open_source, shipped

HOT = "dgx-1-v100-hot"
FILES = dict(shipped())


def judged(assessment: Assessment) -> dict[str, str]:
    return {finding.key: finding.status.value for finding in assessment.findings}


def test_a_cause_is_a_component() -> None:
    component: Component = assess(HOT).causes[0].component
    assert (component.kind, component.name, component.bdf) == ("gpu", "GPU2", "0000:0a:00.0")


@pytest.mark.parametrize("source", [FILES[HOT], Path(FILES[HOT]), open_source(HOT)], ids=["text", "path", "source"])
def test_any_source_gives_the_same(source: Any) -> None:
    first, second = assess(HOT), assess(source)
    assert (first.findings, first.diagnosis, first.score) == (second.findings, second.diagnosis, second.score)
    assert (second.origin.kind, second.verdict, second.level) == ("recording", Status.FAIL, "default")


@pytest.mark.parametrize(
    ("argv", "request_"),
    [
        ((), Request()),
        (("-q",), Request(level="quick")),
        (("-e", "-i", "0,1", "-i", "3"), Request(level="extended", gpus=("0,1", "3"))),
        (("--only", "ecc,thermal", "--skip", "ecc.mode"), Request(only=("ecc", "thermal"), skip=("ecc.mode",))),
        (("--profile", "none", "--require", "baseline.drift", "--baseline", "dgx-1-v100"),
         Request(profile="none", require=("baseline.drift",), baseline="dgx-1-v100")),
    ],
)  # fmt: skip
def test_a_request_is_the_options_of_the_command(
    argv: tuple[str, ...], request_: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["health", "--format", "json", "--from", HOT, *argv])
    document = json.loads(capsys.readouterr().out)
    assessment = assess(HOT, request_)
    assert document["summary"]["exit_code"] == code
    assert {each["key"]: each["status"] for each in document["findings"]} == judged(assessment)
    assert (document["verdict"], document["level"]) == (assessment.verdict.value, assessment.level)
    assert [cause["explains"] for cause in document["causes"]] == [[*cause.explains] for cause in assessment.causes]
    score = None if assessment.score is None else assessment.score.total
    assert (document["score"] and document["score"]["total"]) == score
    assert document["score"] is None or document["score"]["level"] == assessment.level
    assert (document["profile"] and document["profile"]["name"]) == (assessment.profile and assessment.profile.name)


def test_findings_are_explained_or_not() -> None:
    assessment = assess(HOT)
    explained = [finding.key for cause in assessment.causes for finding in assessment.explained(cause)]
    assert sorted(explained) == sorted(key for cause in assessment.causes for key in cause.explains)
    bad = {key for key, status in judged(assessment).items() if status in ("warn", "unknown", "fail")}
    assert bad == {*explained, *(finding.key for finding in assessment.unexplained)}


def test_settings_stand_for_a_file(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('[severities]\n"thermal.temperature" = "warn"\n', encoding="utf-8")
    of_file = assess(HOT, Request(config=str(file)))
    given = assess(HOT, Request(settings=Settings(severities={"thermal.temperature": "warn"})))
    key = "thermal.temperature/0000:0a:00.0"
    assert judged(of_file)[key] == judged(given)[key] == "warn"
    assert judged(assess(HOT))[key] == "fail"


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (Request(level="quick", window=5), "--window"),
        (Request(level="quick", state="x"), "--state"),
        (Request(state="x"), "--from"),
        (Request(duration=60), "--from"),
        (Request(long=True), "--long"),
        (Request(window=float("nan")), "--window"),
        (Request(deadline=0), "--deadline"),
        (Request(test_seconds=-1), "--test-seconds"),
        (Request(config="x", settings=Settings()), "settings"),
        (Request(only=("ecc.volatil",)), "did you mean ecc.volatile"),
        (Request(require=("ecc.mode",), skip=("ecc",)), "--require ecc.mode"),
        (Request(gpus=("8",)), "no GPU '8'"),
        (Request(profile="dgx-3"), "no profile 'dgx-3'"),
        (Request(baseline="dgx-1-v101"), "did you mean dgx-1-v100"),
    ],
)
def test_what_cannot_be_met_is_refused(request_: Request, named: str) -> None:
    with pytest.raises(BadInput) as caught:
        assess("dgx-1-v100", request_)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["dgx-1-v1000", "", "/nowhere"])
def test_a_source_that_is_none_is_refused(source: str) -> None:
    for function in (assess, examine):
        with pytest.raises(BadInput):
            function(source)


def test_examine_reads_the_wiring_alone() -> None:
    machine = examine("dgx-1-v100")
    assert len(machine.topology.gpus) == 8
    assert "unasked" in repr(machine.snapshot.gpu_ecc)
    assert "unasked" not in repr(examine("dgx-1-v100", ("gpu", "gpu_ecc")).snapshot.gpu_ecc)


def modules(code: str) -> set[str]:
    """What is imported after this code has run."""
    program = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return {*done.stderr.split()}


def test_only_what_is_used_is_imported() -> None:
    bare = modules("import dgxcheck.assessment")
    assert {name for name in bare if name.startswith("dgxcheck.")} == {"dgxcheck.assessment"}
    whole = modules("from dgxcheck.assessment import assess; assess('dgx-1-v100')")
    assert "dgxcheck.assessment.health" in whole
    assert not {"click", "rich", "pynvml", "psutil", "pyudev"} & whole
    assert not any(f"{name}.".startswith(("dgxcheck.cli.", "dgxcheck.output.", "dgxcheck.measure.")) for name in whole)


def test_the_matrix_takes_neither_checks_nor_the_rest_of_the_assessment() -> None:
    used = modules("from dgxcheck.cli import main; main(['topo', '--from', 'dgx-1-v100'])")
    rest = ("checks", "diagnosis", "difference", "facts.faults", "facts.measurement", "profiles", "settings")
    assert {name for name in used if name.startswith(tuple(f"dgxcheck.{each}" for each in rest))} == set()
    assert {name for name in used if name.startswith("dgxcheck.assessment.")} == {"dgxcheck.assessment.machine"}
    heavy = {"pathlib", "subprocess", "rich", "pynvml", "psutil", "pyudev", "tomllib", "importlib.resources"}
    assert heavy & used - modules("import click, json") == set()


def test_a_recording_is_judged_without_modules_that_are_slow_to_import() -> None:
    """Each takes a millisecond or more, for one function that is not needed, or not here."""
    judged = "from dgxcheck.cli import main; main(['health', '--from', 'dgx-1-v100'])"
    slow = {"statistics", "random", "decimal", "hashlib", "shutil", "calendar", "dataclasses", "tempfile", "asyncio"}
    used = modules(judged)
    assert (slow | {"pathlib", "subprocess", "rich"}) & used - modules("import click, json") == set()
    assert {name for name in used if name.startswith("dgxcheck.source.kernel_log.")} == set(), "a recording is filtered"


def test_a_machine_is_recorded_without_what_would_judge_it() -> None:
    used = modules("from dgxcheck.cli import main; main(['record', '/dev/null', '--from', 'dgx-1-v100'])")
    judging = ("dgxcheck.checks.", "dgxcheck.diagnosis.", "dgxcheck.profiles.", "dgxcheck.score.", "dgxcheck.topology.")
    assert {name for name in used if name.startswith(judging)} == set()


def test_signals_are_left_alone_in_other_threads() -> None:
    ran: list[bool] = []

    def body() -> None:
        with interruptible(lambda: None):
            ran.append(True)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert ran == [True]
