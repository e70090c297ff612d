"""Small tagged PDFs, written by hand: reportlab writes no structure trees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pdf_factory import HEIGHT, WIDTH


class Part(NamedTuple):
    """Lines of one size under one tag; ``inner`` puts the content into a Span of its own."""

    tag: str
    lines: Sequence[str]
    size: float = 10
    bold: bool = False
    inner: bool = False


def make_tagged(path: Path, pages: Sequence[Sequence[Part]], *, marked: bool = True) -> Path:
    """Writes a PDF whose structure tree holds the parts in order. ``marked`` is what its catalog
    says of it."""
    objects: list[str] = []

    def add(text: str) -> int:
        objects.append(text)
        return len(objects)

    catalog, pages_at, tree = add(""), add(""), add("")
    add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>")
    elements: list[int] = []
    page_ids: list[int] = []
    parents: list[str] = []
    for number, parts in enumerate(pages):
        page = add("")
        page_ids.append(page)
        stream, y = [], 80.0
        of_page = []
        for k, part in enumerate(parts):
            stream.append(f"/{part.tag} << /MCID {k} >> BDC")
            for line in part.lines:
                text = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
                font = "F2" if part.bold else "F1"
                stream.append(f"BT /{font} {part.size} Tf 72 {HEIGHT - y:.1f} Td ({text}) Tj ET")
                y += 1.2 * part.size
            stream.append("EMC")
            y += 12
            head = f"<< /Type /StructElem /S /{part.tag} /P {tree} 0 R /Pg {page} 0 R"
            element = add(f"{head} /K {k} >>")
            elements.append(element)
            if part.inner:
                span = add(
                    f"<< /Type /StructElem /S /Span /P {element} 0 R /Pg {page} 0 R /K {k} >>"
                )
                objects[element - 1] = f"{head} /K [{span} 0 R] >>"
                element = span
            of_page.append(f"{element} 0 R")
        content = "\n".join(stream)
        stream_at = add(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        objects[page - 1] = (
            f"<< /Type /Page /Parent {pages_at} 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] "
            f"/Resources << /Font << /F1 4 0 R /F2 5 0 R >> >> /Contents {stream_at} 0 R "
            f"/StructParents {number} >>"
        )
        parents.append(f"{number} [{' '.join(of_page)}]")
    objects[catalog - 1] = (
        f"<< /Type /Catalog /Pages {pages_at} 0 R /StructTreeRoot {tree} 0 R "
        f"/MarkInfo << /Marked {'true' if marked else 'false'} >> >>"
    )
    kids = " ".join(f"{p} 0 R" for p in page_ids)
    objects[pages_at - 1] = f"<< /Type /Pages /Count {len(page_ids)} /Kids [{kids}] >>"
    children = " ".join(f"{e} 0 R" for e in elements)
    objects[tree - 1] = (
        f"<< /Type /StructTreeRoot /K [{children}] /RoleMap << /Ueberschrift /H2 >> "
        f"/ParentTree << /Nums [{' '.join(parents)}] >> >>"
    )
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    for place in places:
        out += f"{place:010} 00000 n \n".encode()
    out += (
        f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    )
    path.write_bytes(out)
    return path
