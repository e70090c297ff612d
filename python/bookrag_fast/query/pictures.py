"""Map over figures: what a model sees in their pictures, with the question in mind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, Field

from bookrag_fast.errors import BookragError
from bookrag_fast.index.book_index import BookIndex
from bookrag_fast.index.model import NodeKind
from bookrag_fast.models.plain_text import clipped
from bookrag_fast.models.protocols import Image
from bookrag_fast.models.roles import Role
from bookrag_fast.query.inquiry import Call, Inquiry
from bookrag_fast.query.plan import Evidence

__all__ = ["PictureOf", "PictureReply", "describe_pictures"]

# The picture of a node as it is printed (PNG), or None where there is none. Blocking.
PictureOf = Callable[[BookIndex, int], bytes | None]

_MOST_PICTURES = 4  # looked at for one question
_LONGEST = 1500  # characters taken of a description


class PictureReply(BaseModel):
    """What a picture shows."""

    description: str = Field(description="what it shows that helps to answer; values as printed")
    relevant: bool = Field(True, description="whether it helps to answer at all")


async def describe_pictures(
    inquiry: Inquiry,
    question: str,
    items: Sequence[tuple[int, Evidence]],
    picture_of: PictureOf | None,
) -> dict[int, str]:
    """What a model sees in the first figures among numbered evidence, by number. A figure without
    a picture, or of which the model says nothing, is left to its caption."""
    model = inquiry.models.role(Role.VISION)
    figures = [(n, e) for n, e in items if e.kind == NodeKind.IMAGE.label][:_MOST_PICTURES]
    if model is None or model.max_images < 1 or picture_of is None or not figures:
        return {}
    books = inquiry.by_id()

    async def describe(figure: tuple[int, Evidence]) -> tuple[int, str]:
        number, item = figure
        with inquiry.tracer.operator("Map") as note:
            note["node"] = item.node_id
            picture = await inquiry.work.run(_picture, picture_of, books[item.book], item, note)
            if picture is None:
                where = f"page {item.pages[0]}" if item.pages else f"node {item.node_id}"
                inquiry.tracer.say(
                    f"the figure on {where} could not be looked at ({note['problem']}): "
                    "its caption was read"
                )
                return number, ""
            call = Call(
                Role.VISION,
                "describe",
                {"question": question, "caption": clipped(item.text, _LONGEST) or "-"},
                "the caption of a figure was read",
                max_tokens=512,
                expected_tokens=120,
                images=(Image(picture),),
            )
            reply = await inquiry.ask(call, PictureReply, note)
            said = reply is not None and reply.relevant
            return number, clipped(reply.description, _LONGEST) if reply and said else ""

    found = await inquiry.work.map(describe, figures)
    return {number: text for number, text in found if text}


def _picture(
    picture_of: PictureOf, book: BookIndex, item: Evidence, note: dict[str, Any]
) -> bytes | None:
    """The picture, or None with the reason noted: a file that has gone is no reason to fail."""
    try:
        picture = picture_of(book, item.node_id)
    except (BookragError, OSError) as error:
        # Its message names the file's path, which is no business of a reader far away.
        kind = error.code if isinstance(error, BookragError) else type(error).__name__
        note["problem"] = f"the file that the book was made from cannot be drawn from: {kind}"
        return None
    if not picture:
        note["problem"] = "the book has no picture of it"
        return None
    return picture
