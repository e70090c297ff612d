"""Vector drawings of the handbook, by figure id; each function takes the text width in points."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from reportlab.graphics.shapes import Circle, Drawing, Line, Polygon, Rect, String
from reportlab.lib.colors import Color, HexColor, white

INK = HexColor(0x1B2A41)
GREY = HexColor(0x8A97A8)
BLUE = HexColor(0xD9E6F5)
GREEN = HexColor(0xDDEFDD)
SAND = HexColor(0xF7EBD3)
ROSE = HexColor(0xF6DDDD)
STRONG = HexColor(0x2F6DB5)
RED = HexColor(0xB5483A)

Point = tuple[float, float]


def label(
    d: Drawing,
    x: float,
    y: float,
    text: str,
    *,
    size: float = 8,
    bold: bool = False,
    anchor: str = "middle",
    color: Color = INK,
) -> None:
    font = "Helvetica-Bold" if bold else "Helvetica"
    d.add(String(x, y, text, fontName=font, fontSize=size, textAnchor=anchor, fillColor=color))


def box(d: Drawing, x: float, y: float, w: float, h: float, text: str, fill: Color = BLUE) -> None:
    """A rounded box with its lower left corner at (x, y); lines of text parted by newlines."""
    d.add(Rect(x, y, w, h, rx=4, ry=4, fillColor=fill, strokeColor=INK, strokeWidth=0.7))
    lines = text.split("\n")
    top = y + h / 2 + (len(lines) - 1) * 5 - 2.8
    for i, line in enumerate(lines):
        label(d, x + w / 2, top - 10 * i, line, bold=i == 0)


def line(d: Drawing, a: Point, b: Point, color: Color = INK, dash: bool = False) -> None:
    shape = Line(a[0], a[1], b[0], b[1], strokeColor=color, strokeWidth=0.8)
    if dash:
        shape.strokeDashArray = [3, 2]
    d.add(shape)


def arrow(d: Drawing, a: Point, b: Point, color: Color = INK, dash: bool = False) -> None:
    line(d, a, b, color, dash)
    angle = math.atan2(b[1] - a[1], b[0] - a[0])
    points = [b[0], b[1]]
    for turn in (2.75, -2.75):
        points += [b[0] + 6 * math.cos(angle + turn), b[1] + 6 * math.sin(angle + turn)]
    d.add(Polygon(points, fillColor=color, strokeColor=color, strokeWidth=0.4))


def pipeline(width: float) -> Drawing:
    d = Drawing(width, 150)
    w, h, gap = 84, 34, (width - 5 * 84) / 4
    top = ["PDF file", "Blocks\ntype, box, font", "Tree T\nsections", "Graph G\nentities"]
    top.append("GT-Link M\nentity to nodes")
    for i, text in enumerate(top):
        x = i * (w + gap)
        box(d, x, 108, w, h, text, SAND if i == 0 else BLUE)
        if i:
            arrow(d, (x - gap + 1, 125), (x - 1, 125))
    bottom = ["Question", "Plan", "Operators\nselect, reason, rank", "Evidence\nnodes, boxes"]
    bottom.append("Answer\nwith citations")
    for i, text in enumerate(bottom):
        x = i * (w + gap)
        box(d, x, 6, w, h, text, SAND if i == 0 else GREEN)
        if i:
            arrow(d, (x - gap + 1, 23), (x - 1, 23))
    x = 2 * (w + gap)
    box(d, x - 30, 60, w + 60, 28, "BookIndex on the shelf", ROSE)
    centre = x + w / 2
    arrow(d, (centre, 107), (centre, 89))
    arrow(d, (centre, 59), (centre, 41))
    for i in (3, 4):
        start = i * (w + gap) + w / 2
        line(d, (start, 108), (start, 74))
    arrow(d, (4 * (w + gap) + w / 2, 74), (x + w + 31, 74))
    return d


def tree(width: float) -> Drawing:
    d = Drawing(width, 168)
    mid = width / 2 - 20

    def node(x: float, y: float, text: str, fill: Color, w: float = 74) -> Point:
        box(d, x - w / 2, y, w, 22, text, fill)
        return (x, y)

    rows = {144: "depth 0", 108: "depth 1", 72: "depth 2", 36: "depth 3", 0: "depth 4"}
    for y, text in rows.items():
        label(d, width, y + 8, text, anchor="end", color=GREY)
    root = node(mid, 144, "root", SAND)
    title = node(mid, 108, "title", BLUE)
    chapters = [node(mid + dx, 72, f"{n}", BLUE) for dx, n in ((-130, "1"), (0, "2"), (130, "3"))]
    sections = [node(mid + dx, 36, n, BLUE) for dx, n in ((-46, "2.1"), (46, "2.2"))]
    leaves = [(-150, "text"), (-106 + 36, "text"), (10, "table"), (90, "equation")]
    kids = [node(mid + dx, 0, n, GREEN, 66) for dx, n in leaves]
    lone = node(mid - 150, 36, "text", GREEN, 66)
    last = node(mid + 150, 36, "list", GREEN, 66)

    def join(parent: Point, child: Point) -> None:
        line(d, (parent[0], parent[1]), (child[0], child[1] + 22))

    join(root, title)
    for chapter in chapters:
        join(title, chapter)
    for section in sections:
        join(chapters[1], section)
    join(chapters[0], lone)
    join(chapters[2], last)
    for parent, child in ((0, 0), (0, 1), (1, 2), (1, 3)):
        join(sections[parent], kids[child])
    return d


def graph(width: float) -> Drawing:
    d = Drawing(width, 190)
    spots: dict[str, Point] = {
        "PageRank": (90, 140),
        "damping": (40, 60),
        "node score": (170, 60),
        "GT-Link": (250, 140),
        "entity": (318, 66),
    }
    edges = [
        ("PageRank", "damping", "has parameter"),
        ("PageRank", "node score", "feeds"),
        ("node score", "GT-Link", "projected by"),
        ("GT-Link", "entity", "ties"),
        ("PageRank", "GT-Link", "followed by"),
    ]
    for a, b, text in edges:
        line(d, spots[a], spots[b], STRONG)
        x, y = (spots[a][0] + spots[b][0]) / 2, (spots[a][1] + spots[b][1]) / 2
        d.add(Rect(x - 27, y - 4, 54, 11, fillColor=white, strokeColor=None))
        label(d, x, y - 1, text, size=7, color=RED)
    for name, (x, y) in spots.items():
        d.add(Circle(x, y, 25, fillColor=BLUE, strokeColor=INK, strokeWidth=0.7))
        label(d, x, y - 2.5, name, size=7, bold=True)
    nodes = [("text node 41", 140), ("text node 57", 102), ("table node 58", 64)]
    for text, y in nodes:
        box(d, width - 95, y, 95, 22, text, GREEN)
    for name, y in (("GT-Link", 151), ("GT-Link", 113), ("entity", 75)):
        start = (spots[name][0] + 25, spots[name][1])
        arrow(d, start, (width - 96, y), GREY, dash=True)
    label(d, 145, 8, "graph G: entities and relations", color=GREY)
    label(d, width - 47, 40, "tree T: nodes", color=GREY)
    label(d, width - 47, 28, "dashed: GT-Link M", color=GREY)
    return d


def gradient(width: float) -> Drawing:
    d = Drawing(width, 176)
    panels = [
        ("Case A: no drop, new", [0.72, 0.70, 0.67, 0.66, 0.64, 0.63, 0.61, 0.60, 0.58, 0.57], 0),
        ("Case B: one above, merge", [0.94, 0.38, 0.36, 0.33, 0.31, 0.3, 0.28, 0.27, 0.25, 0.2], 1),
        ("Several above, ambiguous", [0.91, 0.88, 0.8, 0.36, 0.34, 0.3, 0.29, 0.27, 0.24, 0.2], 3),
    ]
    each = width / 3
    for p, (title, scores, high) in enumerate(panels):
        x0, y0, height = p * each + 22, 26, 120.0
        line(d, (x0, y0), (x0 + each - 34, y0))
        line(d, (x0, y0), (x0, y0 + height + 4))
        for tick in (0.0, 0.5, 1.0):
            label(d, x0 - 3, y0 + tick * height - 2.5, f"{tick:.1f}", size=6.5, anchor="end")
        line(d, (x0, y0 + 0.5 * height), (x0 + each - 34, y0 + 0.5 * height), GREY, dash=True)
        step = (each - 40) / len(scores)
        for i, score in enumerate(scores):
            fill = STRONG if i < high else BLUE
            bar = Rect(x0 + 4 + i * step, y0, step - 3, score * height, fillColor=fill)
            bar.strokeColor, bar.strokeWidth = INK, 0.4
            d.add(bar)
        if high:
            x = x0 + 2.5 + high * step
            line(d, (x, y0), (x, y0 + height), RED, dash=True)
            label(d, x + 3, y0 + height - 6, "drop", size=7, color=RED, anchor="start")
        label(d, x0 + (each - 34) / 2, 163, title, bold=True, size=8)
        label(d, x0 + (each - 34) / 2, 12, "candidates by rank, k = 10", size=7)
    return d


SKYLINE_POINTS: list[tuple[float, float]] = [
    (0.06, 0.92), (0.16, 0.85), (0.33, 0.74), (0.47, 0.70), (0.62, 0.45), (0.81, 0.30),
    (0.93, 0.10), (0.10, 0.55), (0.22, 0.40), (0.30, 0.62), (0.42, 0.28), (0.55, 0.40),
    (0.70, 0.18), (0.18, 0.15), (0.35, 0.12),
]  # fmt: skip


def skyline(width: float) -> Drawing:
    d = Drawing(width, 214)
    x0, y0, w, h = 110.0, 34.0, 250.0, 165.0
    line(d, (x0, y0), (x0 + w, y0))
    line(d, (x0, y0), (x0, y0 + h))
    label(d, x0 + w / 2, 8, "graph score (scaled to 1)")
    label(d, x0 - 66, y0 + h / 2 + 4, "text score")
    label(d, x0 - 66, y0 + h / 2 - 7, "(scaled to 1)")
    for tick in (0.0, 0.5, 1.0):
        label(d, x0 + tick * w, y0 - 11, f"{tick:.1f}", size=7)
        label(d, x0 - 5, y0 + tick * h - 2.5, f"{tick:.1f}", size=7, anchor="end")

    def dominated(p: tuple[float, float]) -> bool:
        return any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in SKYLINE_POINTS)

    kept = sorted(p for p in SKYLINE_POINTS if not dominated(p))
    stairs = [(x0, y0 + kept[0][1] * h)]
    for i, (a, b) in enumerate(kept):
        stairs.append((x0 + a * w, y0 + b * h))
        below = kept[i + 1][1] if i + 1 < len(kept) else 0.0
        stairs.append((x0 + a * w, y0 + below * h))
    for start, end in pairwise(stairs):
        line(d, start, end, STRONG, dash=True)
    for p in SKYLINE_POINTS:
        on = p in kept
        fill = STRONG if on else white
        dot = Circle(x0 + p[0] * w, y0 + p[1] * h, 3.6, fillColor=fill, strokeColor=INK)
        dot.strokeWidth = 0.7
        d.add(dot)
    d.add(Circle(x0 + w + 22, y0 + 140, 3.6, fillColor=STRONG, strokeColor=INK))
    label(d, x0 + w + 30, y0 + 137, "kept", anchor="start")
    d.add(Circle(x0 + w + 22, y0 + 124, 3.6, fillColor=white, strokeColor=INK))
    label(d, x0 + w + 30, y0 + 121, "dominated", anchor="start")
    return d


def sequence(width: float) -> Drawing:
    d = Drawing(width, 262)
    names = ["Caller", "Planner", "Selectors", "Reasoners", "Skyline", "Synthesizer"]
    step = (width - 66) / (len(names) - 1)
    xs = [33 + i * step for i in range(len(names))]
    for x, name in zip(xs, names, strict=True):
        box(d, x - 32, 236, 64, 22, name, SAND if name == "Caller" else BLUE)
        line(d, (x, 236), (x, 4), GREY, dash=True)
    calls = [
        (0, 1, "question"),
        (1, 1, "classify; Extract entities"),
        (1, 3, "linked entities"),
        (3, 3, "Text_Reasoning"),
        (3, 2, "text scores"),
        (2, 2, "Select_by_Entity, Select_by_Section"),
        (2, 3, "nodes N_s"),
        (3, 3, "Graph_Reasoning"),
        (3, 4, "two scores a node"),
        (4, 5, "kept nodes"),
        (5, 5, "Map, Reduce"),
        (5, 0, "answer, citations, plan, trace, usage"),
    ]
    y = 218.0
    for a, b, text in calls:
        if a == b:
            w = 7 + 4.1 * len(text)
            d.add(Rect(xs[a] - w / 2, y - 5, w, 14, fillColor=GREEN, strokeColor=INK))
            label(d, xs[a], y - 0.5, text, size=7)
        else:
            arrow(d, (xs[a], y - 3), (xs[b], y - 3))
            middle, half = (xs[a] + xs[b]) / 2, 2 + 1.75 * len(text)
            d.add(Rect(middle - half, y, 2 * half, 8, fillColor=white, strokeColor=None))
            label(d, middle, y + 1, text, size=7)
        y -= 19.2
    return d


def shelf(width: float) -> Drawing:
    d = Drawing(width, 150)
    box(d, 0, 58, 92, 34, "shelf/\none library", SAND)
    for i, (text, fill) in enumerate(
        (("catalogue\nwhich books exist", BLUE), ("book folder\nversion 1, immutable", BLUE))
    ):
        y = 100 - i * 84
        box(d, 130, y, 112, 34, text, fill)
        arrow(d, (93, 75), (129, y + 17))
    files = ["manifest.json", "nodes, regions, cells", "pages", "entities, relations, links"]
    files += ["merges, neighbours", "terms, postings", "node and entity vectors"]
    for i, name in enumerate(files):
        top = 126 - i * 20.5
        box(d, 300, top, 130, 17, name, SAND if i == 0 else GREEN)
        arrow(d, (243, 33), (299, top + 8.5), GREY)
    return d


FIGURES: dict[str, Callable[[float], Drawing]] = {
    "pipeline": pipeline,
    "tree": tree,
    "graph": graph,
    "gradient": gradient,
    "skyline": skyline,
    "sequence": sequence,
    "shelf": shelf,
}
