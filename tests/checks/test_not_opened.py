"""What NVML itself says of a GPU that it counts and does not open."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_whole_devices import document

from dgxcheck.facts.missing import Json

CARD, OTHER = "0000:1a:00.0", "0000:1b:00.0"


def refusing(indexes: tuple[int, ...], code: int) -> dict[str, Json]:
    gap: dict[str, Json] = {"missing": "garbled", "detail": f"NVML {code}", "code": code}
    return {f"nvml nvmlDeviceGetHandleByIndex {index}": {**gap} for index in indexes}


@pytest.mark.parametrize(("code", "due"), [
    (8, ("fail", "gpu-unpowered", "power cables")), (11, ("fail", "gpu-refused", "INTx")),
    (999, ("unknown", None, "nvidia-smi -L")),
])  # fmt: skip
def test_what_the_code_says(code: int, due: tuple[str, str | None, str], tmp_path: Path) -> None:
    found = document(tmp_path, "l40s-x8", refusing((0,), code))
    (bad,) = [each for each in found["findings"] if each["id"] == "gpu.lost" and each["status"] in ("fail", "unknown")]
    assert (bad["status"], bad["fault"], bad["subject"]["bdf"]) == (*due[:2], CARD)
    assert due[2] in bad["remedy"]
    assert [cause["id"] for cause in found["causes"]] == ([f"gpu/{CARD}"] if bad["fault"] else [])


def test_several_answers_name_no_gpu(tmp_path: Path) -> None:
    """One of the two lacks its power, and nobody knows which."""
    found = document(tmp_path, "l40s-x8", {**refusing((0,), 8), **refusing((1,), 999)})
    bad = {each["subject"]["bdf"]: each["status"] for each in found["findings"]
           if each["id"] == "gpu.lost" and each["status"] in ("fail", "unknown")}  # fmt: skip
    assert bad == {CARD: "unknown", OTHER: "unknown"}
