"""The fabric and the recovery action of a GPU, as nvidia-smi words them."""

from __future__ import annotations

import pytest

from dgxcheck.facts.missing import Json
from dgxcheck.facts.nvml import gpu as nvml
from dgxcheck.readers.nvidia_smi import query
from dgxcheck.readers.nvidia_smi.answers import UNSUPPORTED, _sum, answers
from dgxcheck.readers.nvidia_smi.fields import fabric

REGISTERED = {"fabric/state": "Completed", "fabric/status": "Success", "fabric/cliqueid": "2"}
HEALTHY = {
    "summary": "Healthy", "bandwidth": "Full", "route recovery in progress": "False", "route unhealthy": "False",
    "access timeout recovery": "False", "incorrect configuration": "None",
}  # fmt: skip


def told(**changed: str) -> tuple[Json, Json]:
    """Mask and summary of a dump in which some words differ."""
    words = HEALTHY | {name.replace("_", " "): word for name, word in changed.items()}
    found = fabric(REGISTERED | {f"fabric/health/{name}": word for name, word in words.items()})
    assert found is not None
    return found["healthMask"], found["healthSummary"]


def test_the_health_of_a_fabric() -> None:
    assert told() == (0x1AA, 1)
    assert told(bandwidth="N/A", incorrect_configuration="N/A") == (0xA8, 1)
    assert told(bandwidth="True", access_timeout_recovery="Full", route_unhealthy="Degraded") == (0x108, 1)
    mask, summary = told(summary="Unhealthy", route_unhealthy="True")
    assert isinstance(mask, int)
    flags = [nvml.fabric_flag(mask, name) for name in ("route_unhealthy", "route_recovery")]
    assert (flags, summary) == ([True, False], 2)
    mask, _ = told(bandwidth="Degraded", incorrect_configuration="Insufficient Nvlinks")
    assert isinstance(mask, int)
    assert (nvml.fabric_flag(mask, "degraded_bandwidth"), nvml.fabric_configuration(mask)) == (True, 5)


def test_a_fabric_without_health() -> None:
    found = fabric(REGISTERED)
    assert found == {"state": 3, "status": 0, "cliqueId": 2, "clusterUuid": None}
    assert fabric({"fabric/state": "N/A", "fabric/status": "N/A"}) is None
    assert fabric(REGISTERED | {"fabric/status": "Strange"}) is None


@pytest.mark.parametrize(("state", "status", "gap"), [
    ("Strange", "Success", "garbled"), ("Completed", "Strange", "garbled"), ("N/A", "N/A", "unsupported"),
    ("", "Success", "unsupported"), ("Completed", "Success", None), ("Completed", None, None),
])  # fmt: skip
def test_words_of_a_fabric_that_are_none_are_a_gap(state: str, status: str | None, gap: str | None) -> None:
    fields = {"fabric/state": state} | ({} if status is None else {"fabric/status": status})
    answer = dict(answers(fields)).get("GpuFabricInfo", {})
    assert isinstance(answer, dict)
    assert answer.get("missing") == gap


def test_the_recovery_action_counts_more_than_that_a_reset_is_required() -> None:
    reset = {"gpu reset status/reset required": "Yes"}
    assert dict(answers(reset))["FieldValues 230"] == 1
    assert dict(answers(reset | {"gpu recovery action": "Reboot"}))["FieldValues 230"] == 2


@pytest.mark.parametrize(("used", "answer"), [
    ("2 MiB", {"bar1Total": 256 << 20, "bar1Used": 2 << 20, "bar1Free": 254 << 20}),
    ("N/A", UNSUPPORTED), (None, None),
])  # fmt: skip
def test_the_memory_of_bar1(used: str | None, answer: Json) -> None:
    texts = {"total": "256 MiB", "used": used, "free": "254 MiB"}
    fields = {f"bar1 memory usage/{name}": text for name, text in texts.items() if text is not None}
    assert dict(answers(fields)).get("BAR1MemoryInfo") == answer
    none = dict(answers(dict.fromkeys(fields, "N/A")))["BAR1MemoryInfo"]
    assert isinstance(none, dict)
    assert none["missing"] == "unsupported"


_GAP: dict[str, Json] = {"missing": "garbled", "detail": "x"}


@pytest.mark.parametrize(("parts", "total"), [
    ([2, 3], 5), ([2, _GAP], 2), ([0, _GAP], _GAP), ([0, UNSUPPORTED], 0), ([UNSUPPORTED, UNSUPPORTED], UNSUPPORTED),
    ([_GAP], _GAP),
])  # fmt: skip
def test_a_sum_of_errors_of_which_a_part_is_not_known(parts: list[Json], total: Json) -> None:
    assert _sum(parts) == total

@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("None", 0), ("Reset", 1), ("GPU Reset", 1), ("Reboot", 2), ("Node Reboot", 2), ("Drain P2P", 3),
        ("Drain and Reset", 4),
    ],
)  # fmt: skip
def test_recovery_actions(word: str, number: int) -> None:
    assert dict(answers({"gpu recovery action": word}))["FieldValues 230"] == number


def test_a_recovery_action_that_nobody_knows_is_no_action() -> None:
    found = dict(answers({"gpu recovery action": "Dance"}))["FieldValues 230"]
    assert isinstance(found, dict)
    assert found["missing"] == "garbled"


@pytest.mark.parametrize("indent", ["", "    "])
def test_recovery_actions_that_grep_took_out_of_a_dump(indent: str) -> None:
    """Each is of another GPU, which the text does not name."""
    text = "\n".join(f"{indent}GPU Recovery Action                   : {word}" for word in ("None", "Reset", "None"))
    (found,) = query.read_text(tuple(text.splitlines()))
    actions = [value for key, value in sorted(found.facts.items()) if key.startswith("nvml nvmlDeviceGetFieldValues")]
    assert actions == [0, 1, 0]
