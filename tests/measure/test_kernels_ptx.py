"""The PTX module: its kernels' parameters, and that every generation of NVIDIA's assembler takes it for every GPU."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from programs import lacking
from ptx_text import kernels

MODULE = ROOT / "dgxcheck" / "cuda" / "kernels.ptx"
TEXT = MODULE.read_text(encoding="ascii")
TENSOR = MODULE.with_name("tensor.ptx")
PARAMETERS = {
    "dgx_spin": "u64 flag, u64 timeout_clocks",
    "dgx_fill": "u64 dst, u64 words, u32 seed",
    "dgx_check": "u64 src, u64 words, u32 seed, u64 result",
    "dgx_copy": "u64 dst, u64 src, u64 quads",
    "dgx_chase": "u64 start, u32 loads, u64 out",
    "dgx_pingpong": "u64 own_flag, u64 peer_flag, u64 own_data, u64 peer_data, "
    "u32 words, u32 rounds, u32 first, u64 timeout_clocks, u64 result",
    "dgx_fma": "u64 out, u32 iterations",
}
EXPECTED = {
    "11": {"sm_35", "sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"},
    "12": {"sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"},
    "13": {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"},
}
"""Release of CUDA, and GPUs that its assembler is known to know; it may know more."""
SMALLEST_INSTRUCTION = 8
"""Bytes, on Kepler to Pascal; 16 from Volta on."""


def assembler(release: str) -> str:
    """ptxas of a release of CUDA, where ``make ptxas`` put it; without it the test skips, in CI it fails."""
    found = sorted((ROOT / ".venv" / "ptxas" / release).glob("nvidia/*/bin/ptxas"))
    if not found:
        lacking(f"no ptxas of CUDA {release} here; make ptxas fetches it")
    return str(found[0])


def targets(ptxas: str) -> set[str]:
    """The GPUs that an assembler says it can write code for; releases before 13 have no --list-arch."""
    said = subprocess.run((ptxas, "--help"), capture_output=True, text=True, timeout=60, check=True).stdout
    return set(re.findall(r"'(sm_\d+)'", said))


def assemble(ptxas: str, target: str, module: Path, cubin: Path) -> str:
    """What the assembler has to say; a register that goes to memory is an error."""
    options = ("--warning-as-error", "--warn-on-spills", "--gpu-name", target, "--output-file", str(cubin))
    command = (ptxas, *options, str(module))
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
    )
    return done.stdout + (f"exit code {done.returncode}" if done.returncode else "")


def sections(elf: bytes) -> dict[str, int]:
    """Names and sizes of the sections of a 64-bit ELF file (elf(5))."""
    (start,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", elf, start + i * size) for i in range(count)]
    strings = rows[names][4]
    return {elf[strings + row[0] :].split(b"\0", 1)[0].decode(): row[5] for row in rows}


def test_the_module_has_these_kernels_with_these_parameters() -> None:
    found = {
        name: ", ".join(f"{kind} {parameter}" for kind, parameter in kernel.parameters)
        for name, kernel in kernels(TEXT).items()
    }
    assert found == PARAMETERS
    assert TEXT.count(".entry") == len(PARAMETERS)


def test_the_module_asks_for_no_more_than_kepler_and_cuda_6() -> None:
    assert re.findall(r"^\.(?!visible).*", TEXT, re.MULTILINE) == [
        ".version 4.0",
        ".target sm_30",
        ".address_size 64",
    ]
    assert "\0" not in TEXT


def test_flags_are_read_and_written_past_the_caches() -> None:
    """What another GPU or the host changes is never read by a plain load."""
    plain = [line.strip() for line in TEXT.splitlines() if re.search(r"\bld\.global|\bst\.global", line)]
    assert not [line for line in plain if "flag]" in line or "own_data" in line]
    assert len(re.findall(r"ld\.volatile\.global\.u32 %seen, \[%(own_)?flag]", TEXT)) == 2
    assert "st.volatile.global.u32 [%peer_flag]" in TEXT


@pytest.mark.in_ci
@pytest.mark.parametrize("release", sorted(EXPECTED))
def test_an_assembler_takes_the_module_for_every_gpu_that_it_knows(release: str, tmp_path: Path) -> None:
    ptxas = assembler(release)
    known = targets(ptxas)
    assert known >= EXPECTED[release]
    for target in sorted(known):
        cubin = tmp_path / f"{target}.cubin"
        assert (target, assemble(ptxas, target, MODULE, cubin)) == (target, "")
        found = sections(cubin.read_bytes())
        assert {name.removeprefix(".text.") for name in found if name.startswith(".text.")} == set(PARAMETERS)
        assert found[".text.dgx_fma"] >= 128 * SMALLEST_INSTRUCTION  # the work was not optimised away


@pytest.mark.in_ci
@pytest.mark.parametrize("release", sorted(EXPECTED))
def test_an_assembler_takes_the_tensor_module_from_ampere_on(release: str, tmp_path: Path) -> None:
    ptxas = assembler(release)
    for target in sorted(targets(ptxas)):
        said = assemble(ptxas, target, TENSOR, tmp_path / f"{target}.cubin")
        assert (target, not said) == (target, int(target.removeprefix("sm_")) >= 80), said
    assert re.findall(r"^\.(?!visible).*", TENSOR.read_text(encoding="ascii"), re.MULTILINE) == [
        ".version 7.0", ".target sm_80", ".address_size 64",
    ]  # fmt: skip
    found = sections((tmp_path / "sm_80.cubin").read_bytes())
    assert found[".text.dgx_mma"] >= 32 * 16  # the work was not optimised away: 16 bytes an instruction


@pytest.mark.parametrize("release", sorted(EXPECTED))
def test_an_assembler_refuses_a_newer_instruction(release: str, tmp_path: Path) -> None:
    """The control: ``.version 4.0 .target sm_30`` is really held to."""
    ptxas = assembler(release)
    newer = tmp_path / "newer.ptx"
    newer.write_text(TEXT.replace("red.global.add.u32", "red.sys.global.add.u32"), encoding="ascii")
    said = assemble(ptxas, "sm_75", newer, tmp_path / "newer.cubin")
    assert "requires PTX ISA .version 5.0" in said
    assert "exit code" in said
