"""`bookrag show BOOK node ID --out FILE`: a node as it is printed."""

from __future__ import annotations

from pathlib import Path

import typer

from bookrag_fast.cli.options import opened, spoken
from bookrag_fast.cli.output import clean, emit_json
from bookrag_fast.errors import InvalidArgumentError

__all__ = ["show_crops"]


def show_crops(
    book: str,
    node_id: int,
    library: Path,
    *,
    out: Path,
    dpi: int,
    pdf: Path | None,
    password: str | None,
    as_json: bool,
) -> None:
    """Draws each region of a node into ``out``; several get -1, -2 … before its suffix."""
    from bookrag_fast.library.png import check_replaceable, write_png

    if out.suffix.lower() != ".png":
        raise InvalidArgumentError(
            f"--out {out} does not end in .png, which is what a node is drawn as", "add .png to it"
        )
    with opened(library) as shelf:
        pictures = shelf.pictures(spoken(book), node_id, dpi=dpi, pdf=pdf, password=password)
    files = (
        [out]
        if len(pictures) == 1
        else [out.with_name(f"{out.stem}-{k}{out.suffix}") for k in range(1, len(pictures) + 1)]
    )
    for file in files:
        check_replaceable(file)
    for picture, file in zip(pictures, files, strict=True):
        try:
            write_png(file, picture.png)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise InvalidArgumentError(
                f"cannot write {file}: {why}", "choose another place with --out"
            ) from error
    if not as_json:
        for file in files:
            typer.echo(clean(str(file)))
        return
    emit_json({
        "pictures": [
            {
                "page": p.page,
                "label": p.label,
                "bbox": [round(v, 2) for v in p.bbox],
                "file": str(file),
                "width": p.width,
                "height": p.height,
            }
            for p, file in zip(pictures, files, strict=True)
        ]
    })  # fmt: skip
