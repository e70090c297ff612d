"""How results look in a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from bookrag_fast.library.types import Book
    from bookrag_fast.query.plan import Answer, Evidence, QueryPlan, SearchResult, Trace

__all__ = [
    "answer_lines",
    "book_line",
    "clean",
    "emit",
    "emit_json",
    "explain_lines",
    "pages_text",
    "search_lines",
    "shorten",
]

_EXCERPT = 600  # characters of a search hit's text
_TITLE = 100


def emit_json(document: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def emit(lines: Iterable[str]) -> None:
    """Text from books and from us, line by line."""
    for line in lines:
        typer.echo(clean(line))


def clean(text: str) -> str:
    """Without control characters: a PDF's text must not be able to drive the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() or c == "\u3000" else " " for c in text)


def shorten(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def pages_text(pages: Sequence[int], labels: Sequence[str | None]) -> str:
    """ "p. 12 (printed x)", "pp. 4-6 (printed 1, 2, 3)"; "" for a place on no page."""
    if not pages:
        return ""
    runs: list[list[int]] = []
    for page in sorted(set(pages)):
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    numbers = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
    text = f"{'p.' if len(set(pages)) == 1 else 'pp.'} {numbers}"
    printed = list(dict.fromkeys(label for label in labels if label))
    if printed and printed != [str(p) for p in dict.fromkeys(pages)]:
        text += f" (printed {', '.join(printed)})"
    return text


def _section(section: Sequence[str]) -> str:
    return " › ".join(shorten(title, _TITLE) for title in section)


def _place(parts: Iterable[str]) -> str:
    return " · ".join(part for part in parts if part)


def book_line(book: Book) -> str:
    name = "" if book.name == book.title else f" ({book.name})"
    pages = f"{book.pages:>5} pages" if book.pages else "   no pages"
    return f"{book.id}  {pages}  {book.title}{name}"


def answer_lines(answer: Answer, titles: Mapping[str, str]) -> Iterator[str]:
    """The answer, then where it stands."""
    for note in answer.notes:
        yield f"Note: {note}"
    yield answer.text.strip() or "No answer was found."
    if not answer.enough:
        yield ""
        yield "The evidence found may not be enough for this answer."
    if answer.citations:
        yield ""
        yield "Sources"
    for number, cited in enumerate(answer.citations, 1):
        place = _place([
            pages_text(cited.pages, cited.labels),
            _section(cited.section),
            titles.get(cited.book, cited.book) if len(titles) > 1 else "",
            f"node {cited.node_id}",
        ])  # fmt: skip
        yield f"  [{number}] {place}"
        if cited.quote:
            yield f"      “{shorten(cited.quote, 240)}”"


def search_lines(result: SearchResult, titles: Mapping[str, str]) -> Iterator[str]:
    for note in result.notes:
        yield f"Note: {note}"
    if not result.evidence:
        yield "Nothing was found."
    for number, hit in enumerate(result.evidence, 1):
        yield from _hit_lines(number, hit, titles)


def _hit_lines(number: int, hit: Evidence, titles: Mapping[str, str]) -> Iterator[str]:
    place = _place([
        pages_text(hit.pages, hit.labels),
        hit.kind,
        _section(hit.section),
        titles.get(hit.book, hit.book) if len(titles) > 1 else "",
    ])  # fmt: skip
    scores = " ".join(f"{name} {value:.3f}" for name, value in hit.scores.items())
    yield f"{number}. {place}"
    yield f"   {_place([f'node {hit.node_id}', scores])}"
    text = hit.text.strip()
    if len(text) > _EXCERPT:
        text = text[: _EXCERPT - 1].rstrip() + "…"
    for line in text.splitlines():
        yield f"   {line}"
    yield ""


def explain_lines(plan: QueryPlan, trace: Trace) -> Iterator[str]:
    """The plan and how long each operator took."""
    yield ""
    yield from _plan_lines(plan, "")
    yield "Operators"
    for done in trace.operators:
        detail = ", ".join(f"{k}={shorten(str(v), 60)}" for k, v in done.detail.items())
        yield f"  {done.ms:8.2f} ms  {done.operator}  {detail}".rstrip()


def _plan_lines(plan: QueryPlan, indent: str) -> Iterator[str]:
    steps = " → ".join(step.operator for step in plan.steps)
    yield f"{indent}Plan: {plan.category.value} ({plan.reason}): {steps}"
    for sub in plan.sub_plans:
        yield f"{indent}  “{shorten(sub.question, 200)}”"
        yield from _plan_lines(sub, indent + "  ")
