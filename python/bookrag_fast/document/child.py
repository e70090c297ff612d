"""The process that reads files for another one: ``python -m bookrag_fast.document.child LIMIT_MB``.

PDFium ends the process when memory runs out or a file drives it into the ground; here that costs
one document. Requests and answers are frames (see `piped`).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO

from bookrag_fast.config import LayoutSettings, OcrSettings
from bookrag_fast.document.dispatch import read_document
from bookrag_fast.document.pdf.parallel import PagePool
from bookrag_fast.document.piped import limit_memory, listen, own_output, send
from bookrag_fast.document.transfer import to_json
from bookrag_fast.errors import BookragError

__all__ = ["main"]


def main() -> None:
    out = own_output()
    memory_mb = int(sys.argv[1])
    limit_memory(memory_mb)
    requests = listen()
    pool: PagePool | None = None
    while True:
        request = json.loads(requests.get()[1])
        if request["careful"]:
            # Its process ended over this file: read page by page, one at a time is enough.
            with PagePool(request["workers"], memory_mb, least=1) as careful:
                _answer(out, request, careful)
            continue
        if pool is None and request["workers"] > 1:
            pool = PagePool(request["workers"], memory_mb)
        _answer(out, request, pool)


def _answer(out: BinaryIO, request: dict[str, Any], pool: PagePool | None) -> None:
    try:
        document = read_document(
            os.fsdecode(bytes.fromhex(request["path"])),
            password=request["password"],
            ocr=OcrSettings.model_validate(request["ocr"]),
            layout=LayoutSettings.model_validate(request["layout"]),
            pages=request["pages"],
            progress=lambda done, total: send(out, "progress", b"[%d,%d]" % (done, total)),
            pool=pool,
        )
        send(out, "document", to_json(document))
    except BookragError as error:
        fields = {"code": error.code, "message": error.message, "hint": error.hint}
        send(out, "error", json.dumps(fields).encode("ascii"))
    except MemoryError:
        send(out, "memory", b"")


if __name__ == "__main__":
    main()
