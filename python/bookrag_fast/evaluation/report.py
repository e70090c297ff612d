"""Results as rows: a Markdown table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

from bookrag_fast.evaluation.runner import Result
from bookrag_fast.evaluation.scores import TreeScore

__all__ = ["correlation", "macro", "markdown", "to_json"]

_MEASURES: tuple[tuple[str, Callable[[TreeScore], float | None]], ...] = (
    ("precision", lambda s: s.precision),
    ("recall", lambda s: s.recall),
    ("f1", lambda s: s.f1),
    ("level", lambda s: s.level_accuracy),
    ("parent", lambda s: s.parent_accuracy),
    ("parent_end_to_end", lambda s: s.parent_end_to_end),
)
_NEED_LEVELS = ("level", "parent", "parent_end_to_end")
_HEADER = (
    "document", "true", "found", "precision", "recall", "F1", "level", "parent", "end to end",
    "rests on", "confidence", "pages", "s", "pages/s",
)  # fmt: skip
_NAME_WIDTH = 40
_MIN_BOOKS = 10  # for a correlation; fewer show chance


def macro(results: Sequence[Result]) -> dict[str, float | None]:
    """Means over the documents that did not fail; levels and parents only where the truth is
    reliable and there is something to compare. None where there is nothing."""
    out = {}
    for name, _ in _MEASURES:
        values = [v for r in results if (v := _measures(r)[name]) is not None]
        out[name] = sum(values) / len(values) if values else None
    return out


def correlation(results: Sequence[Result]) -> float | None:
    """Pearson's r of confidence and F1 over the documents; None for fewer than 10 or no spread."""
    pairs = [
        (r.confidence, r.score.f1)
        for r in results
        if r.score is not None and r.confidence is not None
    ]
    if len(pairs) < _MIN_BOOKS:
        return None
    mean_x, mean_y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    xy = sum((x - mean_x) * (y - mean_y) for x, y in pairs)
    xx = sum((x - mean_x) ** 2 for x, _ in pairs)
    yy = sum((y - mean_y) ** 2 for _, y in pairs)
    return xy / sqrt(xx * yy) if xx * yy > 0 else None


def to_json(results: Sequence[Result]) -> dict[str, Any]:
    """{"documents": [...], "macro": {...}}; measures are in [0, 1], null where there is none."""
    scored, pages, seconds = _totals(results)
    rate = round(pages / seconds, 1) if seconds else None
    means = {name: _rounded(value) for name, value in macro(results).items()}
    return {
        "documents": [_row_json(r) for r in results],
        "macro": {
            "documents": scored,
            "failed": len(results) - scored,
            **means,
            "confidence_f1_correlation": _rounded(correlation(results)),
            "pages": pages,
            "seconds": round(seconds, 3),
            "pages_per_second": rate,
        },
    }


def markdown(results: Sequence[Result]) -> str:
    """A table with a row a document and one of the means, and what to know beside it."""
    rows = [_cells(r) for r in results]
    scored, pages, seconds = _totals(results)
    means = macro(results)
    rate = f"{pages / seconds:.1f}" if seconds else "–"
    rows.append([
        f"mean of {scored}", "", "", *(_number(means[name]) for name, _ in _MEASURES),
        "", "", str(pages), f"{seconds:.2f}", rate,
    ])  # fmt: skip
    widths = [max(len(row[k]) for row in [list(_HEADER), *rows]) for k in range(len(_HEADER))]
    lines = [_line(_HEADER, widths), "|" + "|".join("-" * (w + 2) for w in widths) + "|"]
    lines += [_line(row, widths) for row in rows]
    r = correlation(results)
    if r is not None:
        lines += ["", f"Correlation (Pearson's r) of confidence and F1: {r:.2f}"]
    if any(result.score is not None and not result.levels_reliable for result in results):
        lines += ["", "– in level and parent columns: the truth's levels are not reliable."]
    lines += _failures(results)
    return "\n".join(lines) + "\n"


def _failures(results: Sequence[Result]) -> list[str]:
    failed = [r for r in results if r.error is not None]
    return ["", *(f"{r.name} failed: {r.error}" for r in failed)] if failed else []


def _totals(results: Sequence[Result]) -> tuple[int, int, float]:
    scored = [r for r in results if r.score is not None]
    return len(scored), sum(r.pages for r in scored), sum(r.seconds for r in scored)


def _measures(result: Result) -> dict[str, float | None]:
    score = result.score
    return {
        name: None
        if score is None or (name in _NEED_LEVELS and not result.levels_reliable)
        else measure(score)
        for name, measure in _MEASURES
    }


def _row_json(result: Result) -> dict[str, Any]:
    row: dict[str, Any] = {"document": result.name}
    if result.error is not None:
        error = result.error
        return row | {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    assert result.score is not None
    return row | {
        "true": result.score.truth,
        "found": result.score.predicted,
        "matched": result.score.matched,
        **{name: _rounded(value) for name, value in _measures(result).items()},
        "levels_reliable": result.levels_reliable,
        "toc_source": result.toc_source,
        "confidence": _rounded(result.confidence),
        "pages": result.pages,
        "seconds": round(result.seconds, 3),
        "pages_per_second": round(result.pages_per_second, 1),
    }


def _cells(result: Result) -> list[str]:
    name = result.name
    if len(name) > _NAME_WIDTH:
        name = name[: _NAME_WIDTH - 1] + "…"
    name = name.replace("|", "¦")  # it would end the cell
    if result.score is None:
        return [name, "failed", *[""] * (len(_HEADER) - 2)]
    return [
        name, str(result.score.truth), str(result.score.predicted),
        *(_number(value) for value in _measures(result).values()),
        result.toc_source, _number(result.confidence), str(result.pages),
        f"{result.seconds:.2f}", f"{result.pages_per_second:.1f}",
    ]  # fmt: skip


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
