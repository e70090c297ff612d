"""What a server does with the bytes of an uploaded book before it reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bookrag_fast.errors import LibraryError
from bookrag_fast.server import upload
from bookrag_fast.server.generated.bookrag.v1 import bookrag_pb2 as pb


async def test_a_file_that_cannot_be_written_is_no_incident(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[pb.IndexBookRequest]:
        yield pb.IndexBookRequest(chunk=b"%PDF-")

    with pytest.raises(LibraryError, match=r"cannot keep the upload of a\.pdf"):
        await upload.receive(
            pb.Upload(name="a.pdf"), chunks(), tmp_path / "gone", limit=1 << 20, idle_s=5
        )
