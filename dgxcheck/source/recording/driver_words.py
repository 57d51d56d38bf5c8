"""Words of the drivers' own messages and of kernel parameters.

A host may have any of them for its name; what is read out of a message must not depend on that. ``driver_words.txt``
has, in lower case, those of lines beside those that are read, and of parts of them that no form names.
"""

from __future__ import annotations

import os
import re
from functools import cache

from dgxcheck.kernel_messages.forms import FORMS
from dgxcheck.package_files import FOLDER, read

_SYNTAX = re.compile(r"\(\?P<\w+>|\\[a-zA-Z]|(?<!\\)\[[^]]*\]|\\")
_NUMBER = re.compile("[0-9a-f]+")


def is_word(name: str) -> bool:
    """Is this a word of the log, or may it be part of a number in it, such as a bus id?"""
    return name.lower() in _words() or (len(name) < 8 and _NUMBER.fullmatch(name.lower()) is not None)


@cache
def _words() -> frozenset[str]:
    """All of them: those that a form of the log looks for, and others."""
    beside = read(os.path.join(FOLDER, "source", "recording", "driver_words.txt")).decode("ascii").split()
    literals = (_SYNTAX.sub("|", form.expression) for form in FORMS)
    return frozenset(beside).union(word.lower() for text in literals for word in re.findall(r"[A-Za-z]\w+", text))
