"""The process that reads files for another one: ``python -m bookrag_fast.document.child LIMIT_MB``.

PDFium ends the process when memory runs out or a file drives it into the ground; here that costs
one document. Requests come on standard input, one JSON line each; answers go to standard output as
frames: a line with a kind and a length, then that many bytes.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import BinaryIO

from bookrag_fast.config import OcrSettings
from bookrag_fast.document.dispatch import read_document
from bookrag_fast.document.transfer import to_json
from bookrag_fast.errors import BookragError

__all__ = ["main"]


def main() -> int:
    # Whatever else in this process prints must not fall between the frames.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    limit = int(sys.argv[1]) << 20
    # Not the hard limit too: processes that read pictures for this one have a limit of their own.
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            document = read_document(
                os.fsdecode(bytes.fromhex(request["path"])),
                password=request["password"],
                ocr=OcrSettings.model_validate(request["ocr"]),
                pages=request["pages"],
                progress=lambda done, total: _send(out, "progress", json.dumps([done, total])),
            )
            _send(out, "document", to_json(document))
        except BookragError as error:
            fields = {"code": error.code, "message": error.message, "hint": error.hint}
            _send(out, "error", json.dumps(fields))
        except MemoryError:
            _send(out, "memory", "")
    return 0


def _send(out: BinaryIO, kind: str, payload: str | bytes) -> None:
    data = payload if isinstance(payload, bytes) else payload.encode("ascii")
    out.write(f"{kind} {len(data)}\n".encode("ascii"))
    out.write(data)
    out.flush()


if __name__ == "__main__":
    sys.exit(main())
