"""Bytes → text when nobody says for sure how they are encoded.

A byte order mark decides, then what the file declares, then whether the bytes are UTF-8. Failing
all that, each likely encoding is judged by how much of what it yields is usual in its language.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

__all__ = ["decode_text", "looks_like_text"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 1 << 16  # bytes that encodings are judged by
_FEW_BAD = 0.02  # of the characters beyond ASCII, for a declared encoding to be believed
_FEW_BAD_UTF8 = 0.1  # the same; other encodings hardly ever look like UTF-8
_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r\f\v\x1b\x1a"))
_MANY_CONTROLS = 0.005
# What documents call an encoding → the larger set that programs write under that name.
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "shift_jis": "cp932", "gb2312": "gb18030",
    "gbk": "gb18030", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-9": "cp1254",
}  # fmt: skip
_COMMON_SIMPLIFIED = frozenset("的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年")
_COMMON_TRADITIONAL = frozenset("的一是不了在人有我他這中大來上國個到說們為子和你地出道也時年")
_KANA = re.compile("[\u3041-\u30ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_RUSSIAN_LOWER = re.compile("(?<=[А-Яа-яЁё])[а-яё]")
_RUSSIAN_UPPER = re.compile("[А-ЯЁ](?=[А-Яа-яЁё])")
_IN_LATIN_WORD = re.compile(r"(?<=[A-Za-z])[À-ÿŒœŠšŸŽž’]|[À-ÿŒœŠšŽž“‘„«](?=[A-Za-z])|[–—”»…€°§]")
_WIDE_SIGNS = re.compile("[\u3000-\u3040\uff01-\uff5e]")


def looks_like_text(head: bytes) -> bool:
    """Whether the beginning of a file is text in some encoding, not binary data."""
    if _bom(head) or _utf16_without_mark(head):
        return True
    if b"\0" in head:
        return False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls <= _MANY_CONTROLS * len(head)


def decode_text(data: bytes, declared: str | None = None) -> str:
    """Text of a whole file. Never fails: what no encoding explains becomes U+FFFD.

    Args:
        declared: what the file says of itself; heeded where it names a known encoding that fits.
    """
    encoding = _bom(data) or _declared(data, declared) or _guess(data)
    text = data.decode(encoding, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _bom(data: bytes) -> str | None:
    return next((name for mark, name in _BOMS if data.startswith(mark)), None)


def _declared(data: bytes, declared: str | None) -> str | None:
    """The declared encoding under the name that covers it all, None when it is not to be used."""
    if not declared:
        return None
    try:
        name = codecs.lookup(declared.strip()).name
        name = _WIDER.get(name, name)
        if name.startswith(("utf-16", "utf-32")):  # ASCII declares it: so it is something else
            return None
        sample = _cut(data[:_SAMPLE]).decode(name, "replace")
    except (LookupError, UnicodeError, ValueError):  # also codecs that make no text ("hex")
        return None
    bad = sample.count("\ufffd")
    return name if bad <= _FEW_BAD * max(1, sum(c > "\x7f" for c in sample)) else None


def _guess(data: bytes) -> str:
    if b"\0" in data[:_SAMPLE] and (wide := _utf16_without_mark(data[:_SAMPLE])):
        return wide
    if data[:_SAMPLE].isascii() and b"\x1b$" in data[:_SAMPLE]:  # how it goes over to Japanese
        return "iso2022_jp"
    try:
        data.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    sample = _cut(data[:_SAMPLE])
    utf8 = sample.decode("utf-8", "replace")
    if utf8.count("\ufffd") <= _FEW_BAD_UTF8 * sum(c > "\x7f" for c in utf8):
        return "utf-8"
    scores = {name: judge(sample.decode(name, "replace")) for name, judge in _JUDGES.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > 0.2 else "cp1252"


def _cut(sample: bytes) -> bytes:
    """Without a last line that the sample cuts in two."""
    return sample if len(sample) < _SAMPLE else sample[: sample.rfind(b"\n") + 1 or len(sample)]


def _utf16_without_mark(sample: bytes) -> str | None:
    """In UTF-16, spaces and line ends alone put a NUL on one side of every other byte."""
    pairs = len(sample) // 2
    even, odd = sample[: 2 * pairs : 2], sample[1 : 2 * pairs : 2]
    for name, high, low in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if high.count(0) > max(2, 0.02 * pairs) and low.count(0) == 0:
            text = sample[: 2 * pairs].decode(name, "replace")
            if sum(c.isprintable() or c in "\n\r\t\f" for c in text) > 0.97 * len(text):
                return name
    return None


def _share(text: str, usual: float, unusual: int = 0) -> float:
    """Share of what is usual among the characters beyond ASCII; what is broken counts against."""
    wide = sum(c > "\x7f" for c in text)
    broken = text.count("\ufffd") + unusual
    broken += sum("\ue000" <= c <= "\uf8ff" or "\x80" <= c <= "\x9f" for c in text)
    return (usual - 4 * broken) / wide if wide else 0.0


def _japanese(text: str) -> float:
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    half_width = sum("\uff61" <= c <= "\uff9f" for c in text)
    usual = kana + min(han, 4 * kana) + len(_WIDE_SIGNS.findall(text))
    return _share(text, usual, half_width)


def _chinese(common: frozenset[str]) -> Callable[[str], float]:
    def judge(text: str) -> float:
        return _share(text, min(len(_HAN.findall(text)), 9 * sum(c in common for c in text)))

    return judge


def _korean(text: str) -> float:
    return _share(text, len(_HANGUL.findall(text)))


def _russian(text: str) -> float:
    lower, upper = len(_RUSSIAN_LOWER.findall(text)), len(_RUSSIAN_UPPER.findall(text))
    return _share(text, lower + min(upper, lower) * 0.9)  # KOI8-R and CP1251 swap the cases


def _latin(text: str) -> float:
    return _share(text, len(_IN_LATIN_WORD.findall(text)))


_JUDGES: dict[str, Callable[[str], float]] = {
    "cp932": _japanese,
    "euc_jp": _japanese,
    "gb18030": _chinese(_COMMON_SIMPLIFIED),
    "big5hkscs": _chinese(_COMMON_TRADITIONAL),
    "cp949": _korean,
    "cp1251": _russian,
    "koi8_r": _russian,
    "cp1252": _latin,
}
