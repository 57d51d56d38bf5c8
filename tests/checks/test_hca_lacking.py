"""An HCA that is missing from a machine whose profile has no number of them: by what the other GPUs have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judging import judged

from dgxcheck.checks.network.lacking import _are_few
from dgxcheck.facts.missing import Json

CHECK = "network.hca-count"


def without(folder: Path, base: str, *subjects: str, facts: dict[str, Json] | None = None) -> str:
    document = {"schema": "dgxcheck/overlay/1", "base": base, "facts": facts or {}, "drop": [*subjects]}
    path = folder / "fewer.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("base", "gone", "at", "status"), [
    ("gb300-nvl72", ("0010:03:00.0", "mlx5_2", "ib2"), "slot/0019:04:00.0/missing HCA", "warn"),
    ("gb200-nvl72", ("0010:01:00.0", "mlx5_2", "ib2"), "slot/missing HCA", "warn"),
    ("dgx-b300", ("0000:97:00.0", "mlx5_14", "ib4"), "slot/0000:98:00.0/missing HCA", "fail"),
    ("hgx-h100", ("0000:4f:00.0", "mlx5_2", "ib2"), "slot/0000:50:00.0/missing HCA", "warn"),
])  # fmt: skip
def test_the_gpus_beside_it_have_one(
    base: str, gone: tuple[str, ...], at: str, status: str, tmp_path: Path
) -> None:
    _, document = judged(without(tmp_path, base, *gone))
    assert [cause["id"] for cause in document["causes"]] == [at]
    bad = {each["id"]: each["status"] for each in document["findings"] if each["status"] in ("fail", "warn")}
    assert bad[CHECK] == status
    assert "fail" not in {of for id, of in bad.items() if id != CHECK}


@pytest.mark.parametrize(("base", "gone"), [
    ("gb200-nvl72", ("0016:01:00.0", "mlx5_5", "eth5")),  # a BlueField alone
    ("dgx-b300", ("0000:e1:00.0", "0000:e1:00.1", "mlx5_bond_0")),
    ("gb200-nvl72", ("0010:01:00.0", "mlx5_2", "ib2", "0002:01:00.0", "mlx5_1", "ib1")),  # one per socket
    ("hgx-h100", ("0000:4f:00.0", "mlx5_2", "ib2", "0000:5e:00.0", "mlx5_3", "ib3", "0000:9a:00.0", "mlx5_4", "ib4")),
])  # fmt: skip
def test_a_machine_may_have_been_built_so(base: str, gone: tuple[str, ...], tmp_path: Path) -> None:
    _, document = judged(without(tmp_path, base, *gone))
    assert not [each for each in document["findings"] if each["id"] == CHECK and each["status"] != "skip"]


@pytest.mark.parametrize(("short", "gpus", "due"), [(1, 3, True), (1, 2, False), (2, 8, True), (2, 7, False)])
def test_few_of_many_lack_one(short: int, gpus: int, due: bool) -> None:
    assert _are_few(["GPU0"] * short, [*range(gpus)]) is due


def test_a_container_sees_what_it_was_given(tmp_path: Path) -> None:
    gone = ("0010:03:00.0", "mlx5_2", "ib2")
    spec = without(tmp_path, "gb300-nvl72", *gone, facts={"text /.dockerenv": ""})
    statuses = {each["status"] for each in judged(spec)[1]["findings"] if each["id"] == CHECK}
    assert statuses == {"skip"}
