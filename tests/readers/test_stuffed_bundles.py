"""Archives, directories and texts of a machine stuffed with identities: none is in what is written of them."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from report_writer import LINE
from sample import swept
from seam import run
from stuffed_outputs import ADDRESSES, PASTED, TAG, outputs, words
from test_import_bundles import START, tarred
from test_stuffed_box import Identities, held, left_in


def _report(some: Identities) -> bytes:
    """The same outputs as sections of a bug report."""
    found = [START.decode().rstrip() + f"\n\nuname: Linux {some.host} 6.1.0-18-generic #1 SMP x86_64 GNU/Linux\n"]
    for name, data in outputs(some)[0].items():
        base = name.rpartition("/")[2].replace("_", " ")
        title = f"/usr/bin/{base}" if name.startswith("sos") else f"*** /{name}"
        found.append(f"{'dmesg:' if base == 'dmesg' else title}\n\n{data.decode()}\n")
    return "".join(f"{LINE}\n\n{text}" for text in (*found, "End of NVIDIA bug report log file.\n")).encode()


def _supportconfig(some: Identities) -> bytes:
    rows = ["====\n"]
    for name, data in outputs(some)[0].items():
        kind, title = ("Command", name.rpartition("/")[2].replace("_", " ")) if "sos" in name else ("File", f"/{name}")
        rows.append(f"#==[ {kind} ]{'=' * 34}#\n# {title}\n{data.decode()}\n")
    return lzma.compress(tarred(f"scc_{some.host}", {"hardware.txt": "".join(rows).encode()}))


def _put(form: str, some: Identities, folder: Path) -> Path:
    if form in ("sosreport", "unpacked", "loose"):
        files, _ = outputs(some)
        if form == "sosreport":
            path = folder / f"sosreport-{some.host}.tar.xz"
            path.write_bytes(lzma.compress(tarred(f"sosreport-{some.host}", files)))
            return path
        for name, data in files.items():
            path = folder / some.host / (name if form == "unpacked" else name.rpartition("/")[2])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return folder / some.host
    names = {"report": "nvidia-bug-report.log", "supportconfig": f"scc_{some.host}.txz", "pasted": f"{some.host}.txt"}
    path = folder / names[form]
    path.write_bytes({"report": _report, "supportconfig": _supportconfig}[form](some) if form != "pasted"
                     else PASTED.format(**words(some)).encode())  # fmt: skip
    return path


@pytest.mark.parametrize("form", swept(["report", "sosreport", "supportconfig", "unpacked", "loose", "pasted"], 3))
@pytest.mark.parametrize("seed", swept(range(3), 3))
def test_no_identity_is_left(seed: int, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = Identities(seed)
    out = tmp_path / "out.json"
    done = run(capsys, "import", str(_put(form, some, tmp_path)), "-o", str(out))
    assert out.exists(), done.err
    text = out.read_text(encoding="utf-8")
    document = json.loads(text)
    assert len(document["facts"]) > 5
    texts = held(document)
    remaining = [one for own in outputs(some)[1] for one in left_in(own, texts)]
    assert remaining + [one for one in (*ADDRESSES, TAG) if one in text] == []


def test_the_texts_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else nothing could be left: what stands beside the identities is there."""
    run(capsys, "import", str(_put("sosreport", Identities(0), tmp_path)), "-o", str(tmp_path / "out.json"))
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    for part in (
        "blocked for more than 120",
        "renamed from",
        "API mismatch",
        "dump written to",
        "failed to reach",
        "has replays",
        "status 59: module",
        "bios_version",
        "node_guid",
        "iommu=pt",
        '"config": {"rows"',
    ):
        assert part in text
