"""Blocks of a section → content nodes: short paragraphs packed, long ones split, captions tied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bookrag_fast.document.analysis.captions import caption_kind, caption_label
from bookrag_fast.document.model import Block, BlockKind, Cell, Region
from bookrag_fast.index.model import NodeKind

__all__ = ["Content", "contents_of"]

PACK_TO = 900  # characters: a node of text grows up to here
SPLIT_OVER = 2000  # characters: a longer paragraph is split at sentence ends
MAX_GAP = 160.0  # points between a caption and what it names
OTHER_SIDE = 30.0  # points that the unusual side must be nearer
CAPTION_REACH = 3  # blocks between a caption and its table or image

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]?\s+(?=[^\s\d])|(?<=[。！？])")
_OWN_NODE = {
    BlockKind.TABLE: NodeKind.TABLE,
    BlockKind.IMAGE: NodeKind.IMAGE,
    BlockKind.CODE: NodeKind.CODE,
    BlockKind.EQUATION: NodeKind.EQUATION,
    BlockKind.LIST: NodeKind.LIST,
}


@dataclass(slots=True)
class Content:
    kind: NodeKind
    title: str
    text: str
    regions: tuple[Region, ...]
    cells: tuple[Cell, ...] = ()


def contents_of(blocks: Sequence[Block]) -> list[Content]:
    """Content nodes of one section, in order."""
    owners = _caption_owners(blocks)
    captions = {owner: k for k, owner in owners.items()}
    out: list[Content] = []
    open_text: Content | None = None
    for k, block in enumerate(blocks):
        if k in owners:
            continue  # stands as the title of its table or image
        kind = _OWN_NODE.get(block.kind)
        if block.kind is BlockKind.CAPTION:
            kind = NodeKind.TABLE if caption_kind(block.text) == "table" else NodeKind.IMAGE
            out.append(Content(kind, block.text, "", block.regions))
            continue
        if kind is not None:
            title, regions = "", block.regions
            if k in captions:
                caption = blocks[captions[k]]
                title, regions = caption.text, block.regions + caption.regions
            texts = _split(block.text) if kind is NodeKind.LIST else (block.text,)
            out.extend(Content(kind, title, text, regions, block.cells) for text in texts)
            if kind is not NodeKind.EQUATION:
                open_text = None
            continue
        for text in _split(block.text):
            if open_text is not None and len(open_text.text) + len(text) <= PACK_TO:
                open_text.text += "\n" + text
                open_text.regions += block.regions
            else:
                open_text = Content(NodeKind.TEXT, "", text, block.regions)
                out.append(open_text)
    return [c for c in out if c.text or c.title or c.kind is NodeKind.IMAGE]


def _caption_owners(blocks: Sequence[Block]) -> dict[int, int]:
    """Caption → the table or image it belongs to, each at most once.

    A caption without a label ("Table 2") was tied by its source to what it follows. The others
    belong to the nearest on their page. Tables are named above in most books and below in some,
    figures the other way round: the side that leaves the fewest captions alone is the one.
    """
    out: dict[int, int] = {
        k: k - 1
        for k, block in enumerate(blocks)
        if k > 0
        and block.kind is BlockKind.CAPTION
        and blocks[k - 1].kind in (BlockKind.TABLE, BlockKind.IMAGE)
        and (caption_kind(block.text) is None or not block.regions)
    }
    for wanted, usual in ((BlockKind.TABLE, 1), (BlockKind.IMAGE, -1)):
        captions = [
            k
            for k, block in enumerate(blocks)
            if block.kind is BlockKind.CAPTION
            and block.regions
            and k not in out
            and (caption_kind(block.text) == "table") == (wanted is BlockKind.TABLE)
        ]
        if captions:
            taken = set(out.values())
            ways = [_matched(blocks, captions, wanted, side, taken) for side in (usual, -usual)]
            out.update(max(ways, key=lambda way: (len(way[0]), -way[1]))[0])
    return out


def _matched(
    blocks: Sequence[Block],
    captions: Sequence[int],
    wanted: BlockKind,
    first: int,
    taken: set[int],
) -> tuple[dict[int, int], float]:
    """Captions tied to the nearest block, rather on the side ``first`` (1 is below), and how far
    they are from it in all."""
    out: dict[int, int] = {}
    total = 0.0
    for k in captions:
        best: tuple[float, int] | None = None
        for penalty, side in ((0.0, first), (OTHER_SIDE, -first)):
            for step in range(1, CAPTION_REACH + 1):
                other = k + side * step
                if not 0 <= other < len(blocks) or blocks[other].kind is BlockKind.CAPTION:
                    break
                if blocks[other].kind is not wanted or other in taken or other in out.values():
                    continue
                gap = _gap(blocks[k], blocks[other])
                if gap is not None and (best is None or gap + penalty < best[0]):
                    best = (gap + penalty, other)
        if best is not None and best[0] < MAX_GAP:
            out[k] = best[1]
            total += best[0]
    return out, total


def _gap(a: Block, b: Block) -> float | None:
    """White space between two blocks of one page in points, None when on different pages."""
    for one in a.regions:
        for other in b.regions:
            if one.page == other.page:
                return max(other.bbox.y0 - one.bbox.y1, one.bbox.y0 - other.bbox.y1, 0.0)
    return None


def _split(text: str) -> Iterator[str]:
    """Pieces of at most about :data:`PACK_TO`·1.5 characters, cut at sentence or line ends."""
    if len(text) <= SPLIT_OVER:
        yield text
        return
    pieces = re.split(r"(?<=\n)", text) if text.count("\n") > 5 else _sentences(text)
    current = ""
    for piece in pieces:
        if current and len(current) + len(piece) > PACK_TO * 1.5:
            yield current.strip()
            current = ""
        current += piece
        while len(current) > 2 * SPLIT_OVER:  # no sentence end in sight
            cut = current.rfind(" ", 0, SPLIT_OVER)
            cut = cut if cut > SPLIT_OVER // 2 else SPLIT_OVER
            yield current[:cut].strip()
            current = current[cut:]
    if current.strip():
        yield current.strip()


def _sentences(text: str) -> Iterator[str]:
    at = 0
    for match in _SENTENCE_END.finditer(text):
        yield text[at : match.end()]
        at = match.end()
    yield text[at:]


def label_of(content: Content) -> str:
    return caption_label(content.title)
