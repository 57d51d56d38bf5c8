"""What record hides and what it keeps: the site's key, --keep-identity, files of a recording."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pseudonymized import GPU, GUID, IB, UUID, lines_of, one, replaced
from seam import document, facts_text, run, save

from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.load import shipped
from dgxcheck.source.recording.site_key import site_key


def test_the_sites_key_is_used_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert len({site_key(str(tmp_path)) for _ in range(3)}) == 3
    for folder in (tmp_path / "state/dgxcheck", tmp_path / "var/lib/dgxcheck"):
        folder.mkdir(parents=True)
        (folder / "site.key").write_bytes(b" a secret of 24 letters. \n")
        (folder / "site.key").chmod(0o600)
    assert site_key(str(tmp_path)) == b"a secret of 24 letters."


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [(b"\n", 0o600, "16 bytes"), (b"0123456789abcde\n", 0o600, "16 bytes"), (b"0" * 32, 0o640, "0600"),
     (b"0" * 32, 0o604, "0600"), (b"0" * 32, 0o602, "0600")],
)  # fmt: skip
def test_a_key_that_others_may_know_is_refused(
    content: bytes, mode: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "var/lib"))
    key = tmp_path / "var/lib/dgxcheck/site.key"
    key.parent.mkdir(parents=True)
    key.write_bytes(content)
    key.chmod(mode)
    with pytest.raises(BadInput, match=reason):
        site_key(str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to others")
def test_a_key_of_another_user_is_refused_and_of_root_only_the_systems_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for folder in (tmp_path / "state/dgxcheck", tmp_path / "var/lib/dgxcheck"):
        folder.mkdir(parents=True)
    (tmp_path / "state/dgxcheck/site.key").write_bytes(b"0" * 32)
    assert site_key(str(tmp_path)) != b"0" * 32
    key = tmp_path / "var/lib/dgxcheck/site.key"
    key.write_bytes(b"0" * 32)
    key.chmod(0o600)
    os.chown(key, 12345, 12345)
    with pytest.raises(BadInput, match="must belong"):
        site_key(str(tmp_path))


BOX: GroupedFacts = lines_of(
    {
        "names /sys/bus/pci/devices": [GPU],
        "text /sys/bus/pci/devices/0000:06:00.0/class": "0x030200\n",
        "text /sys/bus/pci/devices/0000:06:00.0/vendor": "0x10de\n",
        "names /sys/class/infiniband": ["mlx5_0"],
        f"text {IB}/node_guid": f"{GUID}\n",
        f"text {IB}/node_desc": "dgx-17 mlx5_0\n",
        "text /proc/sys/kernel/hostname": "dgx-17\n",
        "nvml nvmlInit": True,
        "nvml nvmlDeviceGetCount": 1,
        "nvml nvmlDeviceGetHandleByIndex 0": GPU,
        f"nvml nvmlDeviceGetUUID {GPU}": f"GPU-{UUID}",
        f"nvml nvmlDeviceGetSerial {GPU}": "0324018045123",
    }
)


def test_record_hides_and_keep_identity_keeps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    box = save(tmp_path / "box.json", BOX)
    kept, gone, other = (tmp_path / f"{name}.json" for name in ("kept", "gone", "other"))
    mask = os.umask(0o022)
    try:
        assert run(capsys, "record", str(kept), "--from", str(box), "--keep-identity").code == 0
        assert run(capsys, "record", str(gone), "--from", str(box)).code == 0
        os.umask(0o077)
        assert run(capsys, "record", str(other), "--from", str(box)).code == 0
    finally:
        os.umask(mask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, gone, other)] == [0o600, 0o644, 0o600]
    identities = (UUID, GUID, "0324018045123", "dgx-17")
    assert all(identity in kept.read_text() for identity in identities)
    assert not any(identity in path.read_text() for identity in identities for path in (gone, other))
    assert [document(path)["identities"] for path in (kept, gone)] == ["kept", "pseudonyms"]
    assert facts_text(gone) != facts_text(other)  # no key of the site: random ones
    hiding = (UUID, GUID, "dgx-17", "0324018045123")
    for kept_line, gone_line in zip(facts_text(kept).splitlines(), facts_text(gone).splitlines(), strict=True):
        assert kept_line == gone_line or any(identity in kept_line for identity in hiding)


@pytest.mark.parametrize("options", [(), ("--keep-identity",)])
def test_what_is_made_up_stays_and_is_called_so(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again.json"
    assert run(capsys, "record", str(again), "--from", "dgx-1-v100", *options).code == 0
    assert document(again)["identities"] == "made up"
    assert facts_text(again) == facts_text(Path(dict(shipped())["dgx-1-v100"]))


@pytest.mark.parametrize(
    ("said", "kept"), [("pseudonyms", "pseudonyms"), ("kept", "kept"), (None, "kept"), (3, "kept"), ("\x1b", "kept")]
)
def test_kept_identities_are_what_they_were(
    said: Json, kept: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    box = save(tmp_path / "box.json", BOX, head={"identities": said})
    again = tmp_path / "again.json"
    assert run(capsys, "record", str(again), "--from", str(box), "--keep-identity").code == 0
    assert (document(again)["identities"], facts_text(again).count(UUID)) == (kept, 1)
    assert run(capsys, "record", str(again), "--from", str(box)).code == 0
    assert (document(again)["identities"], facts_text(again).count(UUID)) == ("pseudonyms", 0)


def test_a_kept_file_stays_private_where_a_public_one_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = save(tmp_path / "box.json", BOX)
    target = tmp_path / "kept.json"
    target.write_text("old")
    target.chmod(0o666)
    assert run(capsys, "record", str(target), "--from", str(box), "--keep-identity").code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


LIMITS = """# alice asked for it
*       soft    memlock 64   # until May
@physics  -     memlock unlimited
alice   hard    nofile  4096
bob\thard\tmemlock\t8192
"""
UNIT = """[Service]
Environment=TOKEN=s3cret
 LimitMEMLOCK = 64K:infinity
DefaultLimitMEMLOCK=8M
"""


def test_of_limits_only_the_lines_of_memlock_leave_without_their_user() -> None:
    assert one("text /etc/security/limits.conf", LIMITS).split("\n") == [
        "", "*       soft    memlock 64", "hidden  -     memlock unlimited", "", "hidden\thard\tmemlock\t8192", "",
    ]  # fmt: skip
    for path in ("/etc/systemd/system/slurmd.service", "/usr/lib/systemd/system/slurmd.service.d/x.conf"):
        assert [*replaced({f"text {path}": UNIT}).values()] == [
            "\n\n LimitMEMLOCK = 64K:infinity\nDefaultLimitMEMLOCK=8M\n"
        ]


@given(st.text(), st.sampled_from(("/etc/security/limits.conf", "/etc/systemd/system.conf")))
def test_what_sets_no_memlock_never_leaves(text: str, path: str) -> None:
    kept = one(f"text {path}", text)
    assert kept.count("\n") == text.count("\n")
    assert all(not line or "memlock" in line.lower() for line in kept.split("\n"))
