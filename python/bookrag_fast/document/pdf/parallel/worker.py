"""The process that reads pages: ``python -m bookrag_fast.document.pdf.parallel.worker LIMIT_MB``.

It is asked to open a file, to read a page of it, to lay a page out, to close the file. A page that
is read or laid out is answered with one frame, in the order of asking.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from bookrag_fast.document.pdf.pages import failed_page, page_drafts, read_page
from bookrag_fast.document.pdf.parallel.wire import body_of, drafts_to, page_to
from bookrag_fast.document.pdf.pdfium import Pdf, open_pdf
from bookrag_fast.document.piped import limit_memory, listen, own_output, send
from bookrag_fast.errors import BookragError

__all__ = ["main"]


def main() -> None:
    out = own_output()
    limit_memory(int(sys.argv[1]))
    requests = listen()
    send(out, "ready", b"")
    opened = contextlib.ExitStack()
    pdf: Pdf | None = None
    trouble = ""
    while True:
        kind, payload = requests.get()
        if kind == "read":
            number = int(payload)
            if pdf is None:
                raw = failed_page(number, trouble)
            else:
                try:
                    raw = read_page(pdf, number)
                except MemoryError:
                    raw = failed_page(number, f"it needs more than {sys.argv[1]} MiB")
            send(out, "page", page_to(raw))
        elif kind == "draft":
            send(out, "drafts", drafts_to(page_drafts(*body_of(payload))))
        else:
            opened.close()
            pdf, trouble = None, "its file is closed"
            if kind == "open":
                fields = json.loads(payload)
                path = Path(os.fsdecode(bytes.fromhex(fields["path"])))
                try:
                    pdf = opened.enter_context(open_pdf(path, fields["password"]))
                except (BookragError, OSError) as error:  # it could be opened a moment ago
                    trouble = str(error)


if __name__ == "__main__":
    main()
