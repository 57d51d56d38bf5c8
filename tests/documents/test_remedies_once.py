"""No step says what a later step of the same cause does: it would be done twice, or too early."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "remedies.txt"
DOES = {
    "reboot": r"\breboot\b", "reset-gpu": r"\breset (?:the|all) GPUs?\b|nvidia-smi -r\b",
    "field-diagnostic": r"dcgmi diag", "power-cycle": r"\bcold power cycle\b",
    "drain": r"\bdrain the (?:node|GPU|host)\b", "contact-vendor": r"\bcall the vendor\b",
    "restart-service": r"systemctl (?:enable --now|restart)",
}  # fmt: skip
CONDITIONS = (
    "only a reboot helps", "run after a reboot too", "take effect at the next reboot",
)  # fmt: skip
"""What tells whether the later step is due."""
ACTS = re.compile(
    r"\b(?:ms?t?l?x?fwreset|burn |flash |reboot|replace |reseat|restart|reinstall|install |unload |dcgmi diag|"
    r"power cycle|un?mount |--stop|--create|e2fsck -[fpy]|end jobs|update |systemctl (?:stop|restart))"
)
BEGINS = re.compile(r"inspect: (?:wake|bind|unbind|give|assign|set|enable|disable|load|remove|start|echo|modprobe) ")
"""What changes something before anybody has looked."""
LATER = (
    "at the next maintenance", "at the next drain", "only a reboot helps", "holds after a reboot",
    "until the next reboot", "once the host is drained", "services that were killed", "continue with the old limit",
)  # fmt: skip
"""What is for another time, or is said of another one."""


def causes() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for block in GOLDEN.read_text().split("\n\n"):
        head, *rows = block.strip().splitlines() or [""]
        steps = [row[4:].split(": ", 1) for row in rows if row.startswith("  - ")]
        yield head, [(step, text.split(" | ")[0]) for step, text in steps]


def test_what_only_looks_does_nothing() -> None:
    """An inspection that resets, burns, replaces or ends something says what it disturbs, so it follows the drain."""
    rows = [row[4:] for row in GOLDEN.read_text().splitlines() if row.startswith("  - inspect: ")]
    assert len(rows) > 50
    acting = [row for row in rows if " | disturbs none | " in row and ACTS.search(row.split(" | ")[0])]
    assert [row for row in acting if not any(words in row for words in LATER)] == []
    assert [row for row in rows if " | disturbs none | " in row and BEGINS.match(row)] == []


def test_no_step_is_named_before_its_turn() -> None:
    twice = [
        f"{head}: {step} says {later}: {text}"
        for head, steps in causes()
        for at, (step, text) in enumerate(steps)
        for later, _ in steps[at + 1 :]
        if later in DOES and step != later and re.search(DOES[later], text)
        and not any(condition in text for condition in CONDITIONS)
    ]  # fmt: skip
    assert twice == []


Step = tuple[str, str]
"""What is done, and the whole row."""
Rule = Callable[[str, Sequence[Step]], bool]
"""Of the head of a cause, with the faults that print it, and its steps."""


def _in_order(*wanted: str) -> Rule:
    """Those of these steps that a cause has stand in this order."""

    def holds(head: str, steps: Sequence[Step]) -> bool:
        found = [step for step, _ in steps if step in wanted]
        return found == sorted(found, key=wanted.index)

    return holds


def _first(*allowed: str) -> Rule:
    return lambda head, steps: steps[0][0] in allowed


def _of(step: str, when: str, then: str) -> Rule:
    """Every row of this step that matches ``when`` matches ``then``."""
    return lambda head, steps: all(
        re.search(then, row) for name, row in steps if re.fullmatch(step, name) and re.search(when, row)
    )


def _none(step: str, words: str = "") -> Rule:
    return lambda head, steps: not any(re.fullmatch(step, name) and re.search(words, row) for name, row in steps)


def _restarts_after(words: str) -> Rule:
    """What these words set needs the reboot that is a later step."""
    return lambda head, steps: all(
        "reboot" in [step for step, _ in steps[at + 1 :]] for at, (_, row) in enumerate(steps) if re.search(words, row)
    )


def _loads_all_that_it_unloads(head: str, steps: Sequence[Step]) -> bool:
    for name, row in steps:
        if name == "load-module" and (found := re.search(r"modprobe -r ([^;]+); modprobe -a ([^;]+);", row)):
            unloaded, loaded = found[1].split(), found[2].split()
            if not {*unloaded} <= {*loaded} or loaded[0] != "nvidia":
                return False
    return True


RULES: tuple[tuple[str, str, Rule], ...] = (
    # what it is about, which causes it holds for, the rule
    ("a subnet manager is asked before it is restarted", "subnet-manager", _first("inspect")),
    ("no DIMM is taken out without its label", "",
     _of("reseat|replace", r"\bDIMM", r"DIMM (?:whose label|at (?!mc\d))")),
    ("no DIMM is sought beside a Grace", r"host memory.*(?:gb[23]00|gh200)", _none(".*", "DIMM")),
    ("adapters on a board are the vendor's",
     r"^(?:hca|link|slot missing HCA)\b.*(?:b300|gb[23]00|dgx-h[12]00|dgx-b200)", _none("reseat|replace")),
    ("config_acs works from a reboot on", "", _restarts_after("config_acs")),
    ("receivers that are not ready are no cable's fault", "receiver-not-ready", _none("reseat|replace|reboot|drain")),
    ("an error that a port contained needs action", "aer-logged|aer-uncorrectable",
     _of("inspect", "no further action", "the device recovered, .*DPC")),
    ("power of the host is not the GPU tray's", "^host power supply", _none(".*", "GPU tray|dcgmi|reseat")),
    ("what is missing is looked for, then rebooted", r"^slot missing",
     _in_order("inspect", "drain", "reboot", "power-cycle", "reseat", "contact-vendor")),
    ("what is missing is looked for", r"^slot missing (?:GPU|HCA)", _first("inspect")),
    ("both ends of a rack's NVLink are looked at", r"^gpu NVLink.*gb[23]00", _first("inspect", "watch")),
    ("DCGM tests no GeForce", "geforce", _none(".*", "^[^|]*dcgmi")),
    ("a reload is no help with an old module on disk", "driver-mismatch",
     _of("inspect", "", "modinfo -F version nvidia")),
    ("versions are compared before a reload", "driver-mismatch", _first("inspect")),
    ("a reload brings back what it unloaded", "", _loads_all_that_it_unloads),
    ("only the node that lacks is made", "uvm-node-gone", _none(".*", "-c 255")),
    ("a desktop that is ended comes back", "",
     _of(".*", "isolate multi-user.target", "warn .*isolate graphical.target")),
    ("the firmware's setup is a restart away", "",
     _of("change-setting", r"firmware setup|in the (?:system )?firmware\b",
         "disturbs host|at (?:a restart|the next maintenance)|to keep it|or the firmware's setting")),
    ("a port is looked at before its cable is moved", r"^port: (?!port-disabled)", _first("inspect")),
    ("heat is no reason to reseat", "cooling", _none("reseat")),
    ("a setting may be intended", "", _of("change-setting", r"nvidia-smi -i \S+ -(?:e|c|rac|rgc|mig)\b", "intended")),
    ("a drain's source is about it", r"^(?!.*: .*(?:xid|gpu-lost))", _none("drain", "/xid.md")),
    ("Xid 79 is a lost GPU's", r"^(?!.*gpu-lost)|gpu-not-started|gpu-refused", _none(".*", "Xid 79")),
    ("each command names its own manual", "", _none(".*", r"nvidia-smi -i .*nvidia-modprobe\(1\)")),
    ("a guest leaves power, slots and boards to its host", r"printed for (?:.*, )?v(?:m|gpu)-",
     _none("power-cycle|reseat|replace|contact-vendor", "")),
    ("a guest's host is asked", r"printed for (?:.*, )?v(?:m|gpu)-.*-(?:gsp|remap)",
     lambda _, steps: steps[-1][0] == "contact-host"),
    ("a vGPU is neither reset nor tested", r"printed for (?:.*, )?vgpu-", _none("reset-gpu|field-diagnostic")),
    ("a GeForce is its maker's to replace", r"gpu.*printed for (?:.*, )?geforce", _none("replace", "vendor's RMA")),
    ("a card's test asks for cooling where it is hot alone", r"^(?!.*(?:overheating|thermal))",
     _none("field-diagnostic", "cooling")),
    ("persistence mode is taken from what is reset alone", "",
     lambda _, steps: all(re.search(r"-r -i (\S+);.*smi -i \1 -pm 0.*smi -i \1 -pm 1|-r;", row)
                          for step, row in steps if step == "reset-gpu" and "-pm 0" in row)),
    ("carriers on a rack's tray are the vendor's", r"^(?:bridge|switch|link).*printed for (?:.*, )?gb[23]00",
     _none("reseat|replace")),
    ("a module that does not load may be blacklisted", "module-not-loaded",
     _of("load-module", "", "module_blacklist=")),
    ("no page is retired where rows are remapped", "retirement",
     lambda head, steps: not re.search(r"[abh]100|[bh]200", head)),
)


def _blocks() -> list[tuple[str, list[Step]]]:
    found = []
    for block in GOLDEN.read_text().split("\n\n"):
        head, *rows = block.strip().splitlines() or [""]
        steps = [(row[4:].split(": ", 1)[0], row[4:]) for row in rows if row.startswith("  - ")]
        found.append((f"{head} {' '.join(row for row in rows if not row.startswith('  - '))}", steps))
    return [(head, steps) for head, steps in found if steps]


@pytest.mark.parametrize(("rule", "where", "holds"), RULES, ids=[rule for rule, *_ in RULES])
def test_a_rule_of_printed_remedies(rule: str, where: str, holds: Rule) -> None:
    meant = [(head, steps) for head, steps in _blocks() if re.search(where, head)]
    assert meant, f"no shipped fault is one for which {rule}"
    assert [head for head, steps in meant if not holds(head, steps)] == []
