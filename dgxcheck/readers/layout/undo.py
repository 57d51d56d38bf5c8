"""The steps by which a paste becomes the lines that tools printed, from the outside in."""

from __future__ import annotations

from dgxcheck.readers.layout import characters, cuts, markdown, numbering, prefixes, prompts, prose, wrapping
from dgxcheck.readers.layout.model import Layout
from dgxcheck.readers.values import bounded

STEPS = (
    markdown.dedented, markdown.without_column, numbering.without_numbers, prefixes.without_times,
    prefixes.without_ranks,
)  # fmt: skip
ROUNDS = 12
"""Layers of quotes, numbers and prefixes around each other."""


def undone(lines: tuple[str, ...]) -> Layout:
    """The text as the tools printed it; a text without any layout is the same lines."""
    found = [characters.plain(line) for line in bounded(lines)]
    hosts = [""] * len(found)
    furniture: set[int] = set()
    for _ in range(ROUNDS):
        before = found
        found = [markdown.unquoted(line) for line in found]
        fences = {at for at, line in enumerate(found) if markdown.is_fence(line)}
        furniture |= fences
        found = ["" if at in fences else line for at, line in enumerate(found)]
        for step in STEPS:
            if found == before:
                found = step(found)
        if found == before:
            found, named = prefixes.without_hosts(found)
            hosts = [new or old for new, old in zip(named, hosts, strict=True)]
        if found == before:
            break
    found = [markdown.unenclosed(line) for line in found]
    furniture |= {at for at, line in enumerate(found) if not line.strip() and lines[at].strip()}
    found, rules = markdown.without_tables(found)
    found, joined = wrapping.unwrapped(found)
    calls = prompts.headings(found)
    calls |= {at: call for at, line in enumerate(found) if at not in calls and (call := prompts.prompt(line))}
    drawn = {at for at, line in enumerate(found) if prompts.is_drawn(line) or cuts.is_cut(line)}
    furniture = (furniture | rules | drawn | calls.keys()) - joined.keys()
    present = ""
    for at in range(len(found)):
        present = (calls[at].host.partition(".")[0] or present) if at in calls else present
        hosts[at] = hosts[at] or present
        if at in calls:
            found[at] = calls[at].command
    words = frozenset(at for at, line in enumerate(found) if at not in furniture and line and prose.is_prose(line))
    return Layout(
        lines=tuple(found), furniture=frozenset(furniture), prose=words, joined=joined, hosts=tuple(hosts),
    )  # fmt: skip
