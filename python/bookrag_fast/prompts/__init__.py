"""What models are asked: one text file a prompt and language, with a version.

A file is ``LANGUAGE/NAME.md``: a first line ``version: N``, then the parts ``# system`` and
``# user`` with places ``{{like_this}}``. Whoever changes a text raises its version, which is part
of every cache key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Literal

__all__ = ["Language", "Prompt", "RenderedPrompt", "language_of", "load_prompt"]

Language = Literal["en", "ja"]

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_KANA = re.compile(r"[\u3040-\u30ff]")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """``id`` is "name@version/language"."""

    id: str
    system: str
    user: str


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    version: int
    language: Language
    system: str
    user: str

    @property
    def id(self) -> str:
        return f"{self.name}@{self.version}/{self.language}"

    def render(self, values: Mapping[str, object] | None = None) -> RenderedPrompt:
        """The prompt with its places filled, in one pass: what is filled in is never read as a
        place itself. KeyError for a place without a value."""
        known = values or {}

        def fill(match: re.Match[str]) -> str:
            return str(known[match.group(1)])

        return RenderedPrompt(self.id, _PLACE.sub(fill, self.system), _PLACE.sub(fill, self.user))


@lru_cache(maxsize=64)
def load_prompt(name: str, language: Language = "en") -> Prompt:
    """A prompt of this package. FileNotFoundError for one that there is not."""
    text = (resources.files(__name__) / language / f"{name}.md").read_text(encoding="utf-8")
    head, system, user = re.split(r"^# (?:system|user)\s*$", text, flags=re.MULTILINE)
    version = int(head.partition("version:")[2])
    return Prompt(name, version, language, system.strip(), user.strip())


def language_of(text: str) -> Language:
    """The language to ask a model in about this text: Japanese for text with kana among mostly CJK
    letters, else English."""
    sample = text[:4000]
    letters = len(_LETTER.findall(sample))
    japanese = _KANA.search(sample) and 3 * len(_CJK.findall(sample)) >= letters
    return "ja" if japanese else "en"
