"""What is recorded replays the same: directory, NVML answers, a recording of a recording, later moments."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seam import Answers, Ask, document, facts_text, heard, run, save, saved

from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.source.directory import DirectorySource
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.recorder import RecordingSource

SOME = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.one_of(
    st.sampled_from([b"mlx5_0", b"mlx5_10", b"a", b"b", b"names", b"text", b" ", b"a b", b"x\ny", b"\xff"]),
    st.binary(min_size=1, max_size=6).filter(lambda name: not {0, 47} & set(name) and name not in (b".", b"..")),
)
TARGETS = st.one_of(
    st.sampled_from([b"a", b"b", b"../a", b"../../a", b"../../../../../../../etc", b"/etc/passwd", b"..", b"\xfe/a"]),
    NAMES,
)
CONTENTS = st.one_of(st.binary(max_size=40), st.sampled_from([b"0\n", b"\xff" * 300, b"a\r\n\xc3"]))
Tree = dict[bytes, "tuple[str, bytes] | Tree"]
LEAVES = st.one_of(
    st.tuples(st.just("file"), CONTENTS),
    st.tuples(st.sampled_from(["unreadable", "large"]), CONTENTS),
    st.tuples(st.just("link"), TARGETS),
    st.tuples(st.just("fifo"), st.just(b"")),
)
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=4),
    lambda below: st.dictionaries(NAMES, st.one_of(LEAVES, below), max_size=4),
    max_leaves=6,
)


def grow(at: bytes, tree: Tree) -> Iterator[bytes]:
    """Make the tree on disk; every path in it."""
    os.makedirs(at, exist_ok=True)
    yield at
    for name, what in tree.items():
        path = os.path.join(at, name)
        if isinstance(what, dict):
            yield from grow(path, what)
            continue
        kind, content = what
        if kind == "link":
            os.symlink(content, path)
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            with open(path, "wb") as file:
                file.write(content * 4000 if kind == "large" else content)
            os.chmod(path, 0 if kind == "unreadable" else 0o644)
        yield path


def file_questions(paths: list[str]) -> list[Ask]:
    def ask(kind: str, path: str, source: Source) -> object:
        question: Callable[[str], object] = getattr(source, kind)
        return question(path)

    return [partial(ask, kind, path) for path in paths for kind in ("text", "data", "link", "names", "opens")]


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@given(TREES)
@SOME
def test_a_recorded_directory_replays_the_same(tree: Tree) -> None:
    with folder() as root:
        paths = list(grow(os.fsencode(root / "tree/sys/class/x"), tree))
        known = [path[len(os.fsencode(root / "tree")) :].decode("utf-8", "replace") for path in paths]
        asked = file_questions([*known, *(f"{path}/a" for path in known), "/sys", "/", "/sys/class/y/z", "/proc/x"])
        source = DirectorySource(str(root / "tree"))
        recorder = RecordingSource(source)
        said = heard(recorder, asked)
        assert heard(source, asked) == said
        replay = saved(recorder, root / "first.json")
        assert heard(replay, asked) == said
        again = RecordingSource(replay)
        assert heard(again, asked) == said
        saved(again, root / "second.json")
        assert (root / "second.json").read_bytes() == (root / "first.json").read_bytes()


BDFS = st.sampled_from(["", "0000:06:00.0", "0000:07:00.0", "10000:e1:00.0", "0000:06:00.0 0000:07:00.0"])
NUMBERS = st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text())
STRUCTS = st.dictionaries(st.text().filter(lambda key: key != "missing"), SCALARS, max_size=3)
VALUES: st.SearchStrategy[Json] = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), STRUCTS, st.lists(STRUCTS, max_size=3)
)
GAPS = st.builds(Missing, st.sampled_from(Gap), st.just(""), st.text(max_size=9))
QUESTIONS = st.tuples(
    st.from_regex(r"nvml[A-Za-z]{1,9}", fullmatch=True), BDFS, st.lists(st.integers(0, 300), max_size=2).map(tuple)
)
MACHINES = st.dictionaries(QUESTIONS, st.one_of(VALUES, GAPS), max_size=8)


def key_of(question: tuple[str, str, tuple[int, ...]]) -> str:
    function, subject, args = question
    return " ".join(("nvml", *filter(None, (function, subject)), *map(str, args)))


def nvml_answers(machine: dict[tuple[str, str, tuple[int, ...]], Json | Missing]) -> dict[str, Json | Missing]:
    """Under their keys, gaps with the question they belong to."""
    keyed = {key_of(question): answer for question, answer in machine.items()}
    return {
        key: Missing(answer.gap, key[5:], answer.detail) if isinstance(answer, Missing) else answer
        for key, answer in keyed.items()
    }


def ask_nvml(question: tuple[str, str, tuple[int, ...]], source: Source) -> object:
    function, subject, args = question
    answer = source.nvml(function, subject, *args)
    return answer if isinstance(answer, Missing) else json.dumps(answer, sort_keys=True)


@given(MACHINES, st.lists(MACHINES, max_size=2))
@SOME
def test_recorded_nvml_answers_replay_the_same_now_and_later(
    now: dict[tuple[str, str, tuple[int, ...]], Json | Missing],
    later: list[dict[tuple[str, str, tuple[int, ...]], Json | Missing]],
) -> None:
    asked: list[Ask] = [partial(ask_nvml, question) for machine in (now, *later) for question in machine]
    moments = [Answers(nvml_answers(machine), at_s=60.5 * (n + 1)) for n, machine in enumerate(later)]
    source: Source = Answers(nvml_answers(now), moments)
    with folder() as root:
        recorder = RecordingSource(source)
        said = [heard(recorder, asked)]
        moment: Source = recorder
        while not isinstance(following := moment.later(0.0), Missing):
            said.append(heard(moment := following, asked))
        assert len(said) == len(later) + 1
        replay: Source = saved(recorder, root / "box.json")
        assert heard(replay, asked) == said[0]
        for n, due in enumerate(said[1:]):
            jumped = open_source(str(root / "box.json")).later(60.5 * (n + 1))
            step = replay.later(0.0)
            assert not isinstance(step, Missing)
            assert not isinstance(jumped, Missing)
            replay = step
            assert heard(replay, asked) == due
            assert heard(jumped, asked) == due
            assert replay.at_s == jumped.at_s == 60.5 * (n + 1)
        assert isinstance(replay.later(0.0), Missing)


def test_a_counter_that_is_back_is_back_at_its_moment_too(tmp_path: Path) -> None:
    lines: dict[str, dict[str, Json]] = {"nvml F": {"0": 1}}
    path = save(tmp_path / "box.json", lines, [(60, {"nvml F": {"0": 2}}), (120.25, {"nvml G": {"": 3}})])
    first = open_source(str(path))
    second = first.later(1)
    assert not isinstance(second, Missing)
    third = second.later(1)
    assert not isinstance(third, Missing)
    assert [source.nvml("F", "", 0) for source in (first, second, third)] == [1, 2, 1]
    assert third.nvml("G") == 3
    assert isinstance(second.nvml("G"), Missing)
    assert (second.at_s, third.at_s) == (60, 120.25)


@pytest.mark.parametrize(("asked", "due"), [(0.0, 60), (60, 60), (60.1, 120), (9999, 120)])
def test_later_is_the_first_moment_that_is_late_enough(tmp_path: Path, asked: float, due: float) -> None:
    path = save(tmp_path / "box.json", {}, [(120, {}), (60, {})])
    later = open_source(str(path)).later(asked)
    assert not isinstance(later, Missing)
    assert later.at_s == due


def test_without_later_growth_is_unrecorded(tmp_path: Path) -> None:
    later = open_source(str(save(tmp_path / "box.json", {}))).later(60)
    assert isinstance(later, Missing)
    assert later.gap is Gap.UNRECORDED


def test_what_was_never_asked_is_unrecorded(tmp_path: Path) -> None:
    source = open_source(str(save(tmp_path / "box.json", {"/a": {"text": {"b": "c"}}, "nvml F": {"": 1}})))
    answers = [*heard(source, file_questions(["/a/x", "/x/y"])), source.nvml("F", "", 1), source.nvml("G"),
               source.name("pci", "10de"), source.data("/a/b"), source.names("/a")]  # fmt: skip
    assert {answer.gap for answer in answers if isinstance(answer, Missing)} == {Gap.UNRECORDED}
    assert all(isinstance(answer, Missing) for answer in answers)


JUNK: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=7), inner, max_size=2)
)
KINDS = st.dictionaries(st.sampled_from(["text", "data", "link", "names", "opens"]), JUNK)


@given(st.dictionaries(st.sampled_from(["/a", "/", "nvml F", "name pci", "junk"]), KINDS), JUNK)
@SOME
def test_a_recording_of_the_wrong_form_gives_gaps_and_raises_nothing(
    lines: dict[str, dict[str, Json]], value: Json
) -> None:
    lines.setdefault("nvml F", {})["0"] = value
    lines.setdefault("/a", {}).setdefault("text", {"b": value})
    with folder() as root:
        source = open_source(str(save(root / "box.json", lines, [(1, lines)])))
        later = source.later(0)
        assert not isinstance(later, Missing)
        for each in (source, later):
            for path in ("/a", "/a/b", "/b", "/"):
                assert isinstance(each.text(path), str | Missing)
                assert isinstance(each.link(path), str | Missing)
                assert isinstance(each.data(path), bytes | Missing)
                assert isinstance(each.opens(path), bool | Missing)
                names = each.names(path)
                assert isinstance(names, Missing) or all(isinstance(name, str) for name in names)
            assert isinstance(each.name("pci", "text"), str | Missing)
            each.nvml("F", "", 0)


def test_an_answer_nested_deeper_than_any_of_nvml_is_garbled(tmp_path: Path) -> None:
    deep: Json = 1
    for _ in range(400):
        deep = [deep]
    source = open_source(str(save(tmp_path / "box.json", {"nvml F": {"": deep, "1": [[{"a": [1]}]]}})))
    assert source.nvml("F") == Missing(Gap.GARBLED, "F", "nested deeper than any answer of NVML")
    assert source.nvml("F", "", 1) == [[{"a": [1]}]]


@pytest.mark.parametrize("box", ["dgx-1-v100", "dgx-station-v100", "k80-x8"])
def test_a_recording_of_a_recording_has_the_same_bytes(
    box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert run(capsys, "record", str(first), "--from", box, "--keep-identity").code == 0
    assert run(capsys, "record", str(second), "--from", str(first), "--keep-identity").code == 0
    assert facts_text(second) == facts_text(first)
    assert len(facts_text(first)) > 100_000
    assert '"later"' in facts_text(first)
    assert document(first)["identities"] == document(second)["identities"] == "made up"
    assert document(first)["recorded_at"] == document(second)["recorded_at"] == "2026-11-20T12:00:00Z"
    assert document(first)["provenance"] == document(second)["provenance"]
    for format_ in ("text", "json", "nvidia-smi"):
        texts = [run(capsys, "topo", "--format", format_, "--from", where).out for where in (box, str(first))]
        assert texts[0]
        assert texts[0] == texts[1].replace(str(first), box)


def test_every_later_moment_is_recorded_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counter = "/sys/class/infiniband/mlx5_0/ports/1/counters"
    port: dict[str, dict[str, Json]] = {
        "/sys/class/infiniband": {"names": ["mlx5_0"]},
        "/sys/class/infiniband/mlx5_0": {"text": {}},
        "/sys/class/infiniband/mlx5_0/ports": {"names": ["1"]},
        counter: {"names": ["symbol_error"], "text": {"symbol_error": "0\n"}},
    }
    grown: list[dict[str, Json]] = [{"text": {"symbol_error": f"{n}\n"}} for n in (1, 2, 3)]
    moments = [(60.0 * n, {counter: line}) for n, line in enumerate(grown, 1)]
    box = save(tmp_path / "box.json", port, moments)
    again = tmp_path / "again.json"
    assert run(capsys, "record", str(again), "--from", str(box), "--keep-identity").code == 0
    kept = document(again)["later"]
    assert kept == [
        {"at_s": at, "facts": {counter: {"text": {"symbol_error": f"{at // 60}\n"}}}} for at in (60, 120, 180)
    ]
    assert run(capsys, "record", str(again), "--from", str(box), "--window", "100").code == 0
    later = document(again)["later"]
    assert isinstance(later, list)
    assert [moment["at_s"] for moment in later if isinstance(moment, dict)] == [120]


def test_a_recording_of_a_directory_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree/sys/class/infiniband/mlx5_0"
    tree.mkdir(parents=True)
    (tree / "hca_type").write_text("MT4115\n")
    box = tmp_path / "box.json"
    again = tmp_path / "again.json"
    assert run(capsys, "record", str(box), "--from", str(tmp_path / "tree")).code == 0
    assert run(capsys, "record", str(again), "--from", str(box), "--keep-identity").code == 0
    for path in (box, again):  # a directory does not tell when it was made
        assert "recorded_at" not in document(path)
        assert document(path)["provenance"] == {"kind": "recorded", "from": "directory"}
        assert document(path)["identities"] == "pseudonyms"
    texts = [run(capsys, "topo", "-m", "--from", str(where)).out for where in (tmp_path / "tree", box)]
    assert "mlx5_0" in texts[0]
    assert texts[0].replace(f"directory {tmp_path / 'tree'}", "") == texts[1].replace(f"recording {box}", "")
