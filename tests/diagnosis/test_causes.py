"""Which components are to blame where one text tells of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.assessment import Request, assess

LOST = "[  812.5] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
REFUSED = "nvidia-container-cli: {} error: {}: unknown\n"
NO_TOOLKIT = 'could not select device driver "" with capabilities: [[gpu]].\n'


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (LOST + REFUSED.format("initialization", "driver rpc error: timed out"), ["gpu"]),
        (LOST + REFUSED.format("device", "3"), ["gpu"]),
        (LOST + "CUDA error 999: unknown error\n", ["gpu"]),
        (LOST + NO_TOOLKIT, ["host", "gpu"]),
        (REFUSED.format("initialization", "driver rpc error: timed out"), ["driver"]),
        (REFUSED.format("device", "3"), ["host"]),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
         + REFUSED.format("device", "3"), ["driver"]),
    ],
)  # fmt: skip
def test_what_a_program_was_refused_follows_from_the_gpu_or_driver(text: str, kinds: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    path.write_text(text)
    assert [cause.component.kind for cause in assess(str(path), Request()).diagnosis.causes] == kinds
