"""A machine with fewer devices than those like it is named, also where no profile says how many it should have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from many import result
from schemas import complaints

from dgxcheck.cli import main
from dgxcheck.fleet.judge import judge

MODEL = "NVIDIA GeForce RTX 5090"


def fleet(folder: Path, gpus: list[int], hcas: list[int] | None = None) -> str:
    lines = []
    for number, count in enumerate(gpus):
        parts = [{"kind": "hca", "serial": f"{number}-{at}", "at": f"mlx5_{at}"} for at in range(hcas[number])] if (
            hcas) else []  # fmt: skip
        document = result("geforce-x4", host=f"ws{number:03}", gpus={MODEL: count}, parts=parts)
        lines.append(json.dumps(document) + "\n")
    (folder / "all.jsonl").write_text("".join(lines))
    return str(folder)


@pytest.mark.parametrize(("gpus", "rare"), [
    ([4] * 20 + [3], ("ws020",)), ([4] * 20 + [5], ("ws020",)), ([4] * 21, ()), ([4] * 20 + [8] * 20, ()),
    ([4] * 6 + [3], ()), ([4] * 20 + [8] * 20 + [7], ("ws040",)), ([4] * 9 + [3], ("ws009",)),
    ([4] * 7 + [3], ("ws007",)), ([4] * 17 + [3] * 2, ()),
])  # fmt: skip
def test_a_number_that_few_have_warns(gpus: list[int], rare: tuple[str, ...], tmp_path: Path) -> None:
    found = judge([fleet(tmp_path, gpus)])
    assert tuple(name for each in found.device_counts for name in each.rare) == rare
    assert found.verdict == ("warn" if rare else "pass")


def test_hcas_are_counted_too(tmp_path: Path) -> None:
    (only,) = judge([fleet(tmp_path, [4] * 16, [4] * 15 + [3])]).device_counts
    assert (only.kind, only.rare) == ("HCA", ("ws015",))


def test_it_is_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = fleet(tmp_path, [4] * 20 + [3])
    assert main(["fleet", folder]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("WARN: 21 nodes: 21 pass; 1 with another number of devices\n")
    assert f"Counts that differ:\n  GPUs of nodes with {MODEL}: 4: ws[000-019] (20); 3: ws020 (1)\n" in printed
    main(["fleet", "--format", "json", folder])
    document = json.loads(capsys.readouterr().out)
    assert complaints("fleet", document) == []
    assert [each["values"][1]["nodes"] for each in document["counts"]] == ["ws020"]
    main(["fleet", "--format", "html", folder])
    assert "Counts that differ" in capsys.readouterr().out
