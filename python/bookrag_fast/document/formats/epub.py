"""EPUB → blocks: the parts of the spine, in order, each read as HTML.

Parts of the spine are no pages. Where a part states no heading, the table of contents names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from bookrag_fast.document.formats.archive import Archive, inside
from bookrag_fast.document.formats.building import Reading, heading
from bookrag_fast.document.formats.html import read_html
from bookrag_fast.document.model import Block, BlockKind
from bookrag_fast.errors import BookragError, DamagedDocumentError, DocumentError, TooLargeError

__all__ = ["read_epub"]

_HTML = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_NCX = "application/x-dtbncx+xml"
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_OPS_TYPE = "{http://www.idpf.org/2007/ops}type"
_FIRST_BLOCKS = 3  # of a part, in which a chapter's name may be printed as plain text


def read_epub(path: Path) -> Reading:
    """Content of a book, its title from the package.

    Raises:
        DamagedDocumentError: the archive, its container or its package cannot be read.
        DocumentError: it is protected (DRM).
        TooLargeError: see `Archive`.
    """
    with Archive(path) as archive:
        package = _package(archive, path.name)
        root = archive.xml(package)
        items = {
            item.get("id", ""): item for item in root.iterfind(".//{*}manifest/{*}item[@href]")
        }
        spine = [items[ref] for ref in _spine(root) if ref in items]
        names = _contents(archive, package, root, items)
        protected = _protected(archive)
        blocks: list[Block] = []
        warnings: list[str] = []
        for item in spine:
            part = inside(package, item.get("href", ""))
            if item.get("media-type") not in _HTML:
                continue
            if part is None or part not in archive:
                warnings.append(f"part {item.get('href')} is not in the archive")
                continue
            if part in protected:
                raise DocumentError(
                    f"{path.name} is protected: {part} is encrypted", "use an unprotected copy"
                )
            try:
                found = read_html(archive.read(part)).blocks
            except TooLargeError:
                raise
            except BookragError as error:  # one damaged part fails alone
                warnings.append(error.message)
                continue
            blocks += _named(found, names.get(part))
        if not spine or (warnings and not blocks):
            why = warnings[0] if warnings else "its spine is empty"
            raise DamagedDocumentError(
                f"{path.name} has no part that can be read: {why}",
                "copy or download the file again",
            )
        return Reading(blocks, _text(root.find(".//{*}metadata/{*}title")), (), tuple(warnings))


def _package(archive: Archive, name: str) -> str:
    container = archive.xml(_CONTAINER)
    for file in container.iter("{*}rootfile"):
        part = inside("", file.get("full-path", ""))
        if part is not None and part in archive:
            return part
    raise DamagedDocumentError(f"{name} names no package", "copy or download the file again")


def _spine(root: etree._Element) -> Iterator[str]:
    for reference in root.iterfind(".//{*}spine/{*}itemref"):
        if reference.get("linear") != "no":
            yield reference.get("idref", "")


def _protected(archive: Archive) -> set[str]:
    """Parts that are encrypted. (Fonts often are; nobody reads them here.)"""
    if _ENCRYPTION not in archive:
        return set()
    found = (
        inside("", reference.get("URI", ""))
        for reference in archive.xml(_ENCRYPTION).iter("{*}CipherReference")
    )
    return {part for part in found if part is not None}


def _contents(
    archive: Archive, package: str, root: etree._Element, items: dict[str, etree._Element]
) -> dict[str, tuple[str, int]]:
    """Part → its name and level (1-based) in the table of contents, the first that leads to it."""
    for item in items.values():
        part = inside(package, item.get("href", ""))
        is_nav = "nav" in item.get("properties", "").split()
        if part is None or part not in archive or not (is_nav or item.get("media-type") == _NCX):
            continue
        out: dict[str, tuple[str, int]] = {}
        try:
            for name, reference, level in (_nav if is_nav else _ncx)(archive.xml(part)):
                target = inside(part, reference)
                if name and target is not None:
                    out.setdefault(target, (name, level))
        except DamagedDocumentError:  # the book is readable without its table of contents
            continue
        if out:
            return out
    return {}


def _nav(root: etree._Element) -> Iterator[tuple[str, str, int]]:
    for nav in root.iter("{*}nav"):
        if nav.get(_OPS_TYPE, "toc") == "toc":
            for link in nav.iter("{*}a"):
                depth = sum(1 for above in link.iterancestors("{*}ol"))
                yield _text(link) or "", link.get("href", ""), max(depth, 1)


def _ncx(root: etree._Element) -> Iterator[tuple[str, str, int]]:
    for point in root.iter("{*}navPoint"):
        content = point.find("{*}content")
        depth = 1 + sum(1 for above in point.iterancestors("{*}navPoint"))
        if content is not None:
            yield _text(point.find("{*}navLabel")) or "", content.get("src", ""), depth


def _text(element: etree._Element | None) -> str | None:
    if element is None:
        return None
    return " ".join("".join(element.itertext()).split()) or None


def _named(blocks: list[Block], name: tuple[str, int] | None) -> list[Block]:
    """Blocks of a part under the heading that they state, else under its name in the contents."""
    if name is None or not blocks or any(b.level is not None for b in blocks):
        return blocks
    title, level = name
    for k, block in enumerate(blocks[:_FIRST_BLOCKS]):
        if block.kind is BlockKind.TEXT and " ".join(block.text.split()) == title:
            return [*blocks[:k], heading(title, level), *blocks[k + 1 :]]
    return [heading(title, level), *blocks]
