"""The site's configuration: what it says, where it is looked for, and one line for whatever is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from together import for_each

from dgxcheck import configuration
from dgxcheck.assessment import selection
from dgxcheck.assessment.selection import of_site
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli import main
from dgxcheck.configuration import settings
from dgxcheck.facts.missing import BadInput
from dgxcheck.input_file import load
from dgxcheck.limits import TOML_BYTES
from dgxcheck.settings import THRESHOLDS, Settings

IDS = tuple(check.id for check in CHECKS)
EVERY_KEY = """
[thresholds]
thermal.margin = 3
"ecc.retired-pages-warn" = 20
[severities]
ecc.mode = "fail"
"power.limit" = "warn"
[network]
ports = ["mlx5_0/1", "ibp5s0/2", "mlx5_0/1"]
[versions]
driver = "550.127.05"
vbios = [" 88.00.18.00.01 ", "88.00.48.00.02"]
hca_firmware = []
"""


def written(folder: Path, text: str | bytes) -> str:
    path = folder / "site.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return str(path)


def refused(path: str) -> str:
    """What is said of a file that cannot be used, without its name."""
    with pytest.raises(BadInput) as caught:
        of_site(path, IDS)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    return said.removeprefix(f"{path}: ")


def test_every_key(tmp_path: Path) -> None:
    path = written(tmp_path, EVERY_KEY)
    assert of_site(path, IDS) == Settings(
        thresholds={"thermal.margin": 3, "ecc.retired-pages-warn": 20},
        severities={"ecc.mode": "fail", "power.limit": "warn"},
        ports=("mlx5_0/1", "ibp5s0/2"),
        driver=("550.127.05",),
        vbios=("88.00.18.00.01", "88.00.48.00.02"),
        path=path,
    )


@for_each("name", THRESHOLDS)
def test_every_threshold_can_be_set_within_its_range(name: str) -> None:
    limit = THRESHOLDS[name]
    assert limit.low <= limit.value <= limit.high
    for value in (limit.low, limit.high):
        assert settings({"thresholds": {name: value}}, "x", IDS).limit(name) == value
    wrong: list[object] = [limit.low - 1, limit.high + 1, float("nan"), float("inf"), 10**400, True, "5", None]
    for each in wrong:
        with pytest.raises(BadInput):
            settings({"thresholds": {name: each}}, "x", IDS)
    assert Settings().limit(name) == limit.value


@for_each(
    ("text", "due"),
    [
        ("[threshold]", "threshold: no such key; did you mean thresholds?"),
        ("zz = 1", "zz: no such key; valid keys: thresholds, severities, network, versions, fleet, acknowledged"),
        ("thresholds = 3", "thresholds: must be a table, [thresholds]"),
        ("[[network]]", "network: must be a table, [network]"),
        ("thresholds.thermal.margn = 3", "thresholds.thermal.margn: no such key; did you mean thermal.margin?"),
        ("thresholds.thermal = 3", "thresholds.thermal: no such key; did you mean thermal.margin?"),
        ("thresholds.thermal.margin = 51",
         "thresholds.thermal.margin: 51 is out of range; must be a number from 0 to 50 °C"),
        ("thresholds.thermal.margin = true", "thresholds.thermal.margin: True is not a number from 0 to 50 °C"),
        ("thresholds.thermal.margin = [1]", "thresholds.thermal.margin: a list is not a number from 0 to 50 °C"),
        ("thresholds.thermal.margin.a = 1", "thresholds.thermal.margin: a table is not a number from 0 to 50 °C"),
        ("thresholds.'thermal.margin' = 1\nthresholds.thermal.margin = 1",
         "thresholds.thermal.margin: is set twice"),
        ("severities.ecc.mod = 'warn'", "severities.ecc.mod: no such check; did you mean ecc.mode?"),
        ("severities.ecc.mode = 'WARN'", "severities.ecc.mode: 'WARN' is not one of 'warn', 'fail'"),
        ("severities.ecc.mode = ['warn']", "severities.ecc.mode: a list is not one of 'warn', 'fail'"),
        ("network.port = []", "network.port: no such key; did you mean ports?"),
        ("network.ports = ['mlx5_0']", "network.ports: 'mlx5_0' is not a port; write it as 'mlx5_0/1'"),
        ("network.ports = ['mlx5_0/0']", "network.ports: 'mlx5_0/0' is not a port; write it as 'mlx5_0/1'"),
        ("network.ports = 1", "network.ports: 1 is not a string or a list of strings"),
        ("versions.vbios = ['']", "versions.vbios: a list is not a string or a list of strings"),
        ("versions.driver = 550.127", "versions.driver: 550.127 is not a string or a list of strings"),
        ('"\\n" = 1', "'\\n': no such key; valid keys: thresholds, severities, network, versions, fleet, acknowledged"),
        ("x = ", "not valid TOML: Invalid value (at end of document)"),
        ("x = 1\nx = 2\n", "not valid TOML: Cannot overwrite a value (at line 2, column 6)"),
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (b"x = '\xff'", "not UTF-8 text (byte 6)"),
        (b"x" * (TOML_BYTES + 1), "larger than 64 KiB"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(text: str | bytes, due: str, tmp_path: Path) -> None:
    assert refused(written(tmp_path, text)) == due


def test_a_number_of_thousands_of_digits_is_not_printed(tmp_path: Path) -> None:
    for digits in (400, 5000):  # Python itself refuses the longer one
        assert len(refused(written(tmp_path, f"thresholds.thermal.margin = {'9' * digits}"))) < 130


def test_an_unknown_check_without_a_near_one_lists_them(tmp_path: Path) -> None:
    said = refused(written(tmp_path, "severities.zzzzzz = 'warn'"))
    assert said == f"severities.zzzzzz: no such check; valid checks: {', '.join(IDS)}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused(str(tmp_path / "none.toml")) == "cannot be read: No such file or directory"
    assert refused(str(tmp_path)) == "is a directory"
    assert refused("/dev/zero") == "not a regular file"
    os.mkfifo(tmp_path / "pipe")
    assert refused(str(tmp_path / "pipe")) == "not a regular file"
    with pytest.raises(BadInput, match="invalid file name"):
        load("a\0b")
    if os.geteuid():
        shut = tmp_path / "shut.toml"
        shut.touch(mode=0)
        assert refused(str(shut)) == "cannot be read: Permission denied"
    assert of_site("/dev/null", IDS) == Settings(path="/dev/null")


def test_the_option_counts_before_the_environment_before_etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {name: tmp_path / f"{name}.toml" for name in ("option", "environment", "etc")}
    monkeypatch.setattr(selection, "SITE", str(files["etc"]))
    monkeypatch.delenv("DGXCHECK_CONFIG", raising=False)
    assert of_site(None, IDS) == Settings()
    for file in files.values():
        file.touch()
    assert of_site(None, IDS).path == str(files["etc"])
    monkeypatch.setenv("DGXCHECK_CONFIG", "")
    assert of_site(None, IDS).path == str(files["etc"])
    monkeypatch.setenv("DGXCHECK_CONFIG", str(files["environment"]))
    assert of_site(None, IDS).path == str(files["environment"])
    assert of_site(str(files["option"]), IDS).path == str(files["option"])
    files["environment"].unlink()
    with pytest.raises(BadInput):
        of_site(None, IDS)


def test_etc_that_may_not_be_looked_into_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DGXCHECK_CONFIG", raising=False)
    monkeypatch.setattr(selection, "SITE", f"/{'x' * 300}")  # ENAMETOOLONG stands for any errno but ENOENT
    with pytest.raises(BadInput, match="cannot be read"):
        of_site(None, IDS)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=90) | st.sampled_from(["warn", "fail"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
names = st.sampled_from([*THRESHOLDS, *IDS, "ports", "driver", "vbios", "hca_firmware", "ecc", "mode"]) | st.text()
tables = st.dictionaries(names, values | st.dictionaries(names, values, max_size=3), max_size=4)
documents = st.dictionaries(st.sampled_from([*configuration.KEYS]) | st.text(), tables | values, max_size=4)


def parsed(read: Callable[[], Settings]) -> Settings | str:
    try:
        return read()
    except BadInput as error:
        return str(error)


@given(document=documents)
def test_any_document_parses_or_is_refused_in_one_line(document: dict[str, object]) -> None:
    found = parsed(lambda: settings(document, "site.toml", IDS))
    if isinstance(found, str):
        assert found.startswith("site.toml: ")
        assert found.isprintable()
    else:
        assert set(found.thresholds) <= set(THRESHOLDS)
        assert set(found.severities) <= set(IDS)


@given(raw=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_parses_or_is_refused_in_one_line(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = written(tmp_path_factory.getbasetemp(), raw)
    found = parsed(lambda: of_site(path, IDS))
    assert found.isprintable() and found.startswith(f"{path}: ") if isinstance(found, str) else found.path == path


def test_health_is_held_to_the_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "thresholds.thermal.margin = 0\nseverities.power.limit = 'fail'")
    assert main(["health", "--from", "dgx-1-v100-power-cap", "--only", "power.limit"]) == 1
    assert main(["health", "--from", "dgx-1-v100-power-cap", "--only", "power.limit", "-c", path]) == 2
    capsys.readouterr()
    monkeypatch.setenv("DGXCHECK_CONFIG", path)
    assert main(["health", "--explain", "thermal.temperature"]) == 0
    assert f"thermal.margin: 0 °C ({path}; default 5 °C)" in capsys.readouterr().out
    assert main(["health", "-c", str(tmp_path), "--from", "dgx-1-v100"]) == 3
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"dgxcheck: {tmp_path}: is a directory\n")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomli stands in")
def test_toml_is_imported_only_where_a_file_is_read() -> None:
    script = (
        "import sys; from dgxcheck.cli import main; main(sys.argv[1:]);print('tomllib' in sys.modules, file=sys.stderr)"
    )
    for command, due in (("topo", "False"), ("health", "True")):
        argv = [sys.executable, "-c", script, command, "--from", "dgx-1-v100"]
        ran = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert ran.stderr.strip() == due
