"""A ZIP archive (EPUB, DOCX) that may be hostile: bounded, and read in memory only.

Nothing is unpacked to disk, so a member called "../../etc/passwd" names nothing but itself.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit

from lxml import etree

from bookrag_fast.errors import DamagedDocumentError, TooLargeError

__all__ = ["Archive", "inside"]

MAX_MEMBERS = 50_000
MAX_MEMBER = 256 << 20  # bytes of one part, unpacked
MAX_READ = 1 << 30  # bytes of all parts that are read, unpacked
MAX_RATIO = 200  # unpacked to packed, of a part of over 1 MiB: text packs to a tenth


class Archive:
    """Parts of an archive by name. Use as a context manager.

    Raises:
        DamagedDocumentError: it is no archive, is truncated, or a part of it is damaged.
        TooLargeError: it has more parts, or they unpack to more, than can be meant.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._left = MAX_READ
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise self._damaged(str(error)) from error
        self._parts = {info.filename: info for info in self._zip.infolist()}
        if len(self._parts) > MAX_MEMBERS:
            self._zip.close()
            raise TooLargeError(
                f"{path.name} has {len(self._parts):,} parts, the limit is {MAX_MEMBERS:,}",
                "check where the file comes from",
            )

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def __contains__(self, part: str) -> bool:
        return part in self._parts

    def read(self, part: str) -> bytes:
        """A part, unpacked. Its size is checked before and, since headers lie, while unpacking.

        Raises:
            KeyError: there is no such part.
        """
        info = self._parts[part]
        limit = min(MAX_MEMBER, self._left)
        packed_tight = info.file_size > 1 << 20 and (
            info.file_size > MAX_RATIO * max(info.compress_size, 1)
        )
        if info.file_size > limit or packed_tight:
            raise self._bomb(part, info.file_size)
        if info.flag_bits & 1:
            raise DamagedDocumentError(
                f"{part} in {self._name} is encrypted", "save a copy without a password"
            )
        try:
            with self._zip.open(info) as file:
                data = file.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
            raise self._damaged(f"{part}: {error}") from error
        if len(data) > limit:
            raise self._bomb(part, len(data))
        self._left -= len(data)
        return data

    def xml(self, part: str) -> etree._Element:
        """The root of an XML part; entities stay unresolved and nothing outside is looked at.

        Raises:
            KeyError: there is no such part.
        """
        data = self.read(part)
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        try:
            return etree.fromstring(data, parser)
        except (etree.XMLSyntaxError, ValueError) as error:
            raise self._damaged(f"{part}: {error}") from error

    def _damaged(self, why: str) -> DamagedDocumentError:
        return DamagedDocumentError(
            f"{self._name} is damaged or truncated: {why}", "copy or download the file again"
        )

    def _bomb(self, part: str, size: int) -> TooLargeError:
        return TooLargeError(
            f"{part} in {self._name} unpacks to {size:,} bytes or more, which no text needs",
            "check where the file comes from, or split it",
        )


def inside(base: str, reference: str) -> str | None:
    """The part that a relative reference in the part ``base`` names, without its fragment; None
    when it leads out of the archive, or is no address."""
    try:
        address = urlsplit(reference)
    except ValueError:  # "http://[": brackets that hold no address
        return None
    if address.scheme or address.netloc or not address.path:
        return base if not address.path and not address.scheme else None
    part = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(address.path)))
    return None if part.startswith(("..", "/")) else part
