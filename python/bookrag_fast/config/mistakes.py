"""What is wrong with settings, in our words: which key, where it stands, what it should be."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bookrag_fast.config.keys import is_secret, known_keys
from bookrag_fast.config.models import MODEL_KINDS
from bookrag_fast.config.sources import variable_of
from bookrag_fast.errors import ConfigError

__all__ = ["explain"]

_ECHOED = 80  # characters of a wrong value
_SHAPES = {"model_type", "model_attributes_type", "dict_type", "list_type"}


def explain(
    error: ValidationError, given: Mapping[str, Any], where: Callable[[str], str]
) -> ConfigError:
    """The first problem; of several rather a misspelt key, for whose sake another may be missing.

    Args:
        given: the settings as they were found, unchecked.
        where: the source of a setting by its dotted name, "" for none.
    """
    found = error.errors(include_url=False, include_context=True)
    first = min(found, key=lambda e: e["type"] != "extra_forbidden")
    key = _key(first)
    source = where(key)
    place = f" in {source}" if source else ""
    kind = first["type"]
    models = given.get("models")
    known = known_keys(models if isinstance(models, Mapping) else {})
    if kind == "extra_forbidden":
        return _unknown(key, place, known)
    if kind == "missing":
        beside = where(key.rpartition(".")[0])
        place = f" in {beside}" if beside else ""
        return ConfigError(f"setting {key!r} is missing{place}", f"add {key.rpartition('.')[2]}")
    if kind == "union_tag_invalid":
        tag = str(first["ctx"]["tag"])
        near = _nearest(tag, MODEL_KINDS)
        kinds = ", ".join(MODEL_KINDS)
        return ConfigError(
            f"setting {f'{key}.kind'!r}{place} is {tag[:_ECHOED]!r}: no kind of model",
            f"did you mean {near}?" if near else f"kinds: {kinds}",
        )
    problem = str(first["msg"]).removeprefix("Value error, ")
    if kind == "model_type":
        problem = "it is a section"
    problem = f"{problem[:1].lower()}{problem[1:]}"
    value = first["input"]
    # Not a whole section, in which there may be secrets, nor an address with a password in it.
    hidden = is_secret(key) or isinstance(value, (Mapping, list)) or "@" in str(value)
    said = "cannot be taken" if hidden else f"is {str(value)[:_ECHOED]!r}"
    return ConfigError(
        f"setting {key!r}{place} {said}: {problem}", _hint(first, key, source, _inside(key, known))
    )


def _key(error: ErrorDetails) -> str:
    """Its dotted name, without what pydantic adds: the kind of a model, and marks in brackets."""
    parts = [str(part) for part in error["loc"]]
    if parts[0] == "models" and len(parts) > 2 and parts[2] in MODEL_KINDS:
        del parts[2]
    return ".".join(part for part in parts if not part.startswith("["))


def _unknown(key: str, place: str, known: list[str]) -> ConfigError:
    near = _nearest(key, known)
    if near:
        return ConfigError(f"unknown setting {key!r}{place}", f"did you mean {near}?")
    section = key.rpartition(".")[0]
    beside = [k for k in known if k.startswith(f"{section}.")] if section else known
    return ConfigError(f"unknown setting {key!r}{place}", f"known keys: {', '.join(beside)}")


def _nearest(word: str, known: Any) -> str:
    """The most alike of ``known``, "" if none is. A last part alone counts too: what is misspelt
    there must not be outweighed by a long section's name."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    section, dot, last = word.rpartition(".")
    if dot:
        beside = [k[len(section) + 1 :] for k in known if k.startswith(f"{section}.")]
        close = [
            f"{section}.{k}" for k in difflib.get_close_matches(last, beside, n=1, cutoff=0.5)
        ] or [k for k in close if not k.startswith(f"{section}.")]
    return close[0] if close else ""


def _inside(key: str, known: list[str]) -> list[str]:
    """The names that a section has."""
    under = f"{key}."
    names = (k[len(under) :].partition(".")[0] for k in known if k.startswith(under))
    return list(dict.fromkeys(names))


def _hint(error: ErrorDetails, key: str, source: str, inside: list[str]) -> str:
    """``inside`` are the names that the setting has if it is a section."""
    if error["type"] == "model_type" and inside and source != "the environment":
        return f"write {{ {', '.join(f'{name} = …' for name in inside)} }}"
    if error["type"] not in _SHAPES or source != "the environment":
        return "correct it, or leave it out to take the default"
    if error["type"] == "model_type":
        return f"it is a section: set {variable_of(key)}__… for its keys"
    return "write it as JSON"
