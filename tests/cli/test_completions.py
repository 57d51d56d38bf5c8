"""The completions that ship: as click writes them, and at work in bash, zsh and fish."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
from checkout import ROOT, python_script
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete
from programs import program
from sample import swept

from dgxcheck.cli import COMMANDS, dgxcheck, main

FOLDER = ROOT / "dgxcheck" / "completions"
WRITTEN_BY_CLICK = "8.5"
"""Another minor version may word them otherwise; to write them again:
``PYTHONPATH=tests python tests/cli/test_completions.py``."""
FILES: dict[str, type[ShellComplete]] = {
    "dgxcheck.bash": BashComplete,
    "_dgxcheck": ZshComplete,
    "dgxcheck.fish": FishComplete,
}


def generated(shell: type[ShellComplete]) -> str:
    return shell(dgxcheck, {}, "dgxcheck", "_DGXCHECK_COMPLETE").source().strip() + "\n"


def on_path(folder: Path) -> dict[str, str]:
    """An environment in which ``dgxcheck`` is this checkout's entry point."""
    script = folder / "dgxcheck"
    script.write_text(python_script("from dgxcheck.__main__ import run\nrun()\n"), encoding="utf-8")
    script.chmod(0o755)
    checkout = str(FOLDER.parent.parent)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": checkout, "HOME": str(folder)}


def said(words: list[str], env: dict[str, str]) -> list[str]:
    result = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout.split()


def test_every_file_is_one_of_a_shell() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_they_are_as_click_writes_them(name: str) -> None:
    if not version("click").startswith(f"{WRITTEN_BY_CLICK}."):
        pytest.skip(f"written by click {WRITTEN_BY_CLICK}, here is {version('click')}")
    program("bash")  # click asks bash for its version
    assert (FOLDER / name).read_text(encoding="utf-8") == generated(FILES[name])


COMPLETED: list[tuple[str, set[str]]] = [
    ("dgxcheck ", {*COMMANDS}),
    ("dgxcheck re", {"record", "recordings"}),
    ("dgxcheck topo --tr", {"--tree"}),
    ("dgxcheck xid --format ", {"text", "json"}),
    ("dgxcheck health --fail-on ", {"warn", "unknown", "fail", "never"}),
    ("dgxcheck topo -p2p ", {*"rwnap"}),
    ("dgxcheck list --fo", {"--format"}),
    ("dgxcheck schema re", {"recording", "result"}),
    ("dgxcheck health --only pcie.w", {"pcie.width"}),
    ("dgxcheck health --skip ecc.mode,pcie.w", {"ecc.mode,pcie.width"}),
    ("dgxcheck health --explain link-n", {"link-narrow"}),
    ("dgxcheck health --profile dgx-1", {"dgx-1-p100", "dgx-1-v100"}),
    ("dgxcheck topo --from dgx-1-v100-gpu-l", {"dgx-1-v100-gpu-lost"}),
    ("dgxcheck integrate graf", {"grafana"}),
    ("dgxcheck watch --profile k80", {"k80-x8"}),
    ("dgxcheck profiles k80", {"k80-x8"}),
    ("dgxcheck xid 79", {"79"}),
    ("dgxcheck topo --from dgx-1-v100 --path GPU0 ml", {f"mlx5_{number}" for number in range(4)}),
    ("dgxcheck topo --from no-such-box --path G", set()),
    ("dgxcheck health --from dgx-1-v100 -i 0,", {f"0,{number}" for number in range(8)}),
]


@pytest.mark.parametrize(("words", "wanted"), COMPLETED)
def test_what_completes(words: str, wanted: set[str]) -> None:
    *before, last = words.split(" ")
    asked = ShellComplete(dgxcheck, {}, "dgxcheck", "_DGXCHECK_COMPLETE").get_completions(before[1:], last)
    assert {each.value for each in asked if each.type == "plain"} == wanted


@pytest.mark.parametrize(("instruction", "code"), [("bash_source", 0), ("zsh_complete", 0), ("tcsh_source", 3)])
def test_exit_code_of_a_completion(instruction: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_DGXCHECK_COMPLETE", instruction), ("COMP_WORDS", "dgxcheck xi"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    assert main([]) == code


@pytest.mark.parametrize(("words", "wanted"), swept(COMPLETED, 5))
def test_bash_completes(words: str, wanted: set[str], tmp_path: Path) -> None:
    script = """
        source "$1"
        IFS=" " read -ra COMP_WORDS <<< "$2"
        [[ $2 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        compopt() { :; }
        "$(complete -p dgxcheck | sed -E 's/.*-F ([^ ]+) .*/\\1/')" dgxcheck
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    command = [program("bash"), "--norc", "-c", script, "bash", str(FOLDER / "dgxcheck.bash"), words]
    assert set(said(command, on_path(tmp_path))) == wanted


def test_fish_completes(tmp_path: Path) -> None:
    script = f"source '{FOLDER}/dgxcheck.fish'; complete --do-complete 'dgxcheck re'"
    found = said([program("fish"), "--no-config", "-c", script], on_path(tmp_path))
    assert {"record", "recordings"} <= set(found)
    assert "topo" not in found


def test_zsh_completes(tmp_path: Path) -> None:
    # what is added is caught: completion itself needs a line editor
    script = f"""
        compdef() {{ : }}
        source '{FOLDER}/_dgxcheck'
        compadd() {{ print -rl -- $completions }}
        _describe() {{ print -rl -- ${{completions_with_descriptions%%:*}} }}
        words=(dgxcheck re) CURRENT=2
        _dgxcheck_completion
    """
    found = said([program("zsh"), "-f", "-c", script], on_path(tmp_path))
    assert set(found) == {"record", "recordings"}


if __name__ == "__main__":
    for file, kind in FILES.items():
        (FOLDER / file).write_text(generated(kind), encoding="utf-8")
