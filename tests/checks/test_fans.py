"""Fans of a card that stand still: the rest of an idle card, and a fault of one that is hot."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_box import document

from dgxcheck.facts.missing import Json

CARD = "0000:23:00.0"


@pytest.mark.parametrize(("percent", "celsius", "due"), [
    (0, 82, ["overheating"]), (0, 75, ["overheating"]), (0, 60, []), (0, 32, []), (60, 82, []),
    ({"missing": "unsupported", "detail": "NVML 3: Not Supported"}, 82, []),
])  # fmt: skip
def test_fans_at_rest(percent: Json, celsius: int, due: list[str], tmp_path: Path) -> None:
    facts: dict[str, Json] = {
        f"nvml nvmlDeviceGetFanSpeed {CARD} ": percent, f"nvml nvmlDeviceGetTemperature {CARD} 0": celsius,
    }  # fmt: skip
    found = document(tmp_path, "geforce-x4", facts)["findings"]
    bad = [each for each in found if each["id"] == "thermal.temperature" and each["status"] in ("warn", "fail")]
    assert [each["fault"] for each in bad] == due
    assert all(each["subject"]["bdf"] == CARD for each in bad)
