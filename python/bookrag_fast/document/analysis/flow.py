"""Blocks that run on: paragraphs and tables over a column or page break become one block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bookrag_fast.document.analysis.blocks import Draft
from bookrag_fast.document.analysis.joining import join_two, runs_on
from bookrag_fast.document.model import BlockKind, Cell, Region

__all__ = ["flow"]

# What may stand between the two halves of a paragraph: floats and notes.
_FLOATS = (BlockKind.CAPTION, BlockKind.IMAGE, BlockKind.TABLE, BlockKind.FOOTNOTE)


def flow(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """Drafts of a whole document in order → the same with the halves put together.

    A half is held back until it is clear that nothing continues it, so memory stays bounded by a
    page or two.
    """
    held: list[Draft] = []
    for draft in drafts:
        start = _first_half(held, draft)
        if start is not None:
            _append(start, draft)
            continue
        if draft.kind not in _FLOATS:
            # A new paragraph: whatever waited before it is complete.
            yield from held
            held = []
        elif len(held) > 40:
            yield from held[:-20]
            held = held[-20:]
        held.append(draft)
    yield from held


def _first_half(held: list[Draft], draft: Draft) -> Draft | None:
    """The waiting block that ``draft`` continues."""
    for earlier in reversed(held):
        last_page = earlier.regions[-1].page if earlier.regions else earlier.page
        if draft.kind is BlockKind.TABLE and earlier.kind is BlockKind.TABLE:
            return earlier if _same_table(earlier, draft, last_page) else None
        if earlier.kind in _FLOATS:
            continue
        moved = draft.page != last_page or draft.column != earlier.column
        alike = (
            earlier.kind is BlockKind.TEXT
            and draft.kind is BlockKind.TEXT
            and abs(earlier.style.size - draft.style.size) < 0.06 * max(earlier.style.size, 1.0)
            and earlier.style.bold == draft.style.bold
        )
        near = draft.page - last_page <= 1
        if moved and near and alike and runs_on(earlier.text, draft.text):
            return earlier
        return None
    return None


def _same_table(first: Draft, second: Draft, last_page: int) -> bool:
    """A table that goes on at the top of the next page with the same columns."""
    if second.page != last_page + 1 or not first.cells or not second.cells:
        return False
    last_box = first.regions[-1].bbox if first.regions else first.box
    columns = {c.column for c in first.cells}, {c.column for c in second.cells}
    aligned = abs(last_box.x0 - second.box.x0) < 12 and abs(last_box.x1 - second.box.x1) < 24
    at_top = second.style.gap_before is None and second.column == 0
    return at_top and aligned and len(columns[0]) == len(columns[1])


def _append(first: Draft, second: Draft) -> None:
    if not first.regions:
        first.regions = [Region(first.page, first.box)]
    first.regions.extend(second.regions or [Region(second.page, second.box)])
    first.line_count += second.line_count
    first.last_line_full = second.last_line_full
    first.column = second.column
    if first.kind is BlockKind.TABLE:
        rows = 1 + max(c.row for c in first.cells)
        known = {(c.column, c.text) for c in first.cells if c.header}
        repeated = {c.row for c in second.cells if c.header}
        again = bool(known) and known == {(c.column, c.text) for c in second.cells if c.header}
        skip = len(repeated) if again else 0
        first.cells += tuple(
            Cell(
                c.row - skip + rows, c.column, c.text, c.row_span, c.column_span, False, c.bbox
            )
            for c in second.cells
            if not (again and c.row in repeated)
        )  # fmt: skip
        lines = second.text.split("\n")
        first.text = "\n".join([first.text, *lines[skip:]])
    else:
        first.text = join_two(first.text, second.text)
