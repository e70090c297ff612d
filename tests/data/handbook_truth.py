"""What a reader of the handbook should find in it, and on which pages."""

from __future__ import annotations

import re
from typing import Any

from handbook_layout import Layout
from handbook_source import TITLE, Book, SourceError


def make_truth(book: Book, layout: Layout, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """What a parser should find in the PDF, and questions with the pages that answer them."""

    def captions(name: str) -> list[dict[str, Any]]:
        found = []
        for number, (key, title) in enumerate(book.captions[name], 1):
            pages = layout.pages_of[f"{name}:{key}"]
            if name == "tab":
                pages = pages | layout.pages_of[f"mark:row:{number}"]
            page = min(pages)
            entry = {"number": number, "title": title, "page": page, "label": layout.label(page)}
            if name == "tab":
                entry["pages"] = sorted(pages)
            found.append(entry)
        return found

    def pages_of_places(places: list[str]) -> set[int]:
        pages: set[int] = set()
        for place in places:
            if place in ("all:tab", "all:fig"):
                pages |= {entry["page"] for entry in captions(place[4:])}
            elif place in layout.pages_of:
                pages |= layout.pages_of[place]
            else:
                raise SourceError(f"questions.json: unknown place {place}")
        return pages

    counts = {name: len(entries) for name, entries in book.captions.items()}
    truth_questions = []
    for question in questions:
        pages = pages_of_places(question["places"])
        truth_questions.append(
            {
                "question": question["question"],
                "kind": question["kind"],
                "answer": question["answer"].format(**counts),
                "keys": [key.format(**counts) for key in question["keys"]],
                "pages": sorted(pages),
                "labels": [layout.label(page) for page in sorted(pages)],
                # Pages that say the same in passing; citing one of them is right as well.
                "also": sorted(pages_of_places(question.get("also", [])) - pages),
            }
        )
    return {
        "doc": "handbook.pdf",
        "title": TITLE,
        "pages": layout.pages,
        "front_pages": layout.front_pages,
        "entries": [
            {
                "level": heading.level,
                "title": heading.printed,
                "page": layout.headings[heading.key],
                "label": layout.label(layout.headings[heading.key]),
            }
            for heading in book.headings
        ],
        "tables": captions("tab"),
        "figures": captions("fig"),
        "listings": captions("lst"),
        "acronyms": [
            {"term": match[1], "acronym": match[2]}
            for term in book.terms
            if (match := re.match(r"(.+) \((.+)\)$", term))
        ],
        "questions": truth_questions,
    }
