"""Characters → lines, by vector operations over a whole page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bookrag_fast.document.analysis.frames import page_to_frame
from bookrag_fast.document.analysis.lettering import clean, decode
from bookrag_fast.document.analysis.lines import Line, put_together
from bookrag_fast.document.model import Lead
from bookrag_fast.document.pdf.chars import PageChars

__all__ = ["lines_of"]

BoolArray = npt.NDArray[np.bool_]

SUPERSCRIPT_SHIFT = 0.5  # of the size; a baseline further off starts another line
WIDE_GAP = 1.15  # of the size; a wider gap ends the line
MAX_STRETCH = 3.0  # of the size; no justified text is stretched further
WORD_GAP = 0.22  # of the size; a wider gap without a space character is a space all the same
FALSE_GAP = 0.07  # of the size; a made-up space in a narrower gap is none (broken ligatures)


def lines_of(chars: PageChars, width: float, height: float) -> list[Line]:
    """Lines of a page of the given size, main frame first, in the order of the content stream."""
    if len(chars) == 0 or len(chars.run_size) == 0:
        return []
    chars = _visible(chars, width, height)
    solid = ~_is_space(chars.code)
    if not solid.any():
        return []
    # A space before a character, real or made up, as flags on the solid characters.
    index = np.flatnonzero(solid)
    real_before = np.zeros(len(chars), np.int32)
    real_before[1:] = np.cumsum(~solid & ~chars.generated)[:-1]
    made_before = np.zeros(len(chars), np.int32)
    made_before[1:] = np.cumsum(~solid & chars.generated)[:-1]
    real = np.zeros(len(index), np.bool_)
    made = np.zeros(len(index), np.bool_)
    real[1:] = np.diff(real_before[index]) > 0
    made[1:] = np.diff(made_before[index]) > 0
    chars = chars.pick(solid)
    fresh = ~_doubled(chars)
    doubled_runs = set(np.unique(chars.run[~fresh]).tolist())
    if not fresh.all():
        chars, real, made = chars.pick(fresh), real[fresh], made[fresh]

    turn = chars.run_turn[chars.run]
    lines: list[Line] = []
    frames = np.bincount(np.where(turn == 4, 0, turn), minlength=4)
    order = sorted(range(4), key=lambda k: -int(frames[k]))
    for frame in order:
        where = turn == frame
        if frame == 0:
            where |= turn == 4
        if not where.any():
            continue
        part = chars if where.all() else chars.pick(where)
        real_part, made_part = (real, made) if where.all() else (real[where], made[where])
        if frame == 0 and _is_vertical(part):
            lines += _frame_lines(part, real_part, made_part, 1, doubled_runs)
        else:
            lines += _frame_lines(part, real_part, made_part, frame, doubled_runs)
    return lines


def _is_space(code: npt.NDArray[np.uint32]) -> BoolArray:
    out: BoolArray = (
        ((code <= 32) & (code != 2))
        | ((code >= 0x7F) & (code <= 0xA0))
        | ((code >= 0x2000) & (code <= 0x200B))
        | (code == 0x3000)
        | (code == 0xFEFF)
    )
    return out


def _visible(chars: PageChars, width: float, height: float) -> PageChars:
    """Without what a reader of the page does not see.

    Invisible text is kept when it is most of the page: that is the text layer of a scan.
    """
    mode = chars.run_mode[chars.run]
    hidden = (mode == 3) | (mode == 7) | ((chars.run_color[chars.run] >> 24) == 0)
    hidden &= ~chars.generated
    if hidden.any() and 2 * int(hidden.sum()) > int((~chars.generated).sum()):
        hidden[:] = False
    x = (chars.box[:, 0] + chars.box[:, 2]) / 2
    y = (chars.box[:, 1] + chars.box[:, 3]) / 2
    outside = (x < -1) | (y < -1) | (x > width + 1) | (y > height + 1)
    tiny = chars.run_size[chars.run] < 1.5  # marks for programs, not for readers
    drop = hidden | ((outside | tiny) & ~chars.generated)
    return chars.pick(~drop) if drop.any() else chars


def _doubled(chars: PageChars) -> BoolArray:
    """Characters drawn again on (nearly) the same place, as fake bold and shadows are."""
    out = np.zeros(len(chars), np.bool_)
    if len(chars) < 2:
        return out
    x, y = chars.origin[:, 0], chars.origin[:, 1]
    # Whatever is drawn twice has some characters in one and the same cell of a grid of points.
    cells = chars.code.astype(np.int64) << 32
    cells |= (x.astype(np.int64) & 0xFFFF) << 16
    cells |= y.astype(np.int64) & 0xFFFF
    cells.sort()
    if not (cells[1:] == cells[:-1]).any():
        return out
    size = chars.run_size[chars.run]
    for shift in (0.0, 0.5):  # twice, so that a pair astride a bucket's edge is seen too
        row = np.floor(y / np.maximum(size, 1.0) + shift).astype(np.int64)
        order = np.lexsort((np.arange(len(x)), x, row, chars.code))
        a, b = order[:-1], order[1:]
        same = (
            (chars.code[a] == chars.code[b])
            & (np.abs(x[a] - x[b]) < 0.12 * size[a])
            & (np.abs(y[a] - y[b]) < 0.12 * size[a])
            & (np.abs(size[a] - size[b]) < 0.2 * size[a])
            # A ligature comes as several characters on one place, but in one text object.
            & (chars.run[a] != chars.run[b])
        )
        out[np.maximum(a[same], b[same])] = True
    return out


def _is_vertical(chars: PageChars) -> bool:
    """Upright characters that follow each other downwards: vertical Japanese or Chinese."""
    cjk = (chars.code >= 0x2E80) & (chars.code <= 0x9FFF)
    if len(chars) < 3 or int(cjk.sum()) * 2 < len(chars):
        return False
    step = np.diff(chars.origin, axis=0)
    size = chars.run_size[chars.run][1:]
    down = (np.abs(step[:, 0]) < 0.3 * size) & (step[:, 1] > 0.3 * size)
    return int(down.sum()) * 2 > len(step)


def _frame_lines(
    chars: PageChars, real: BoolArray, made: BoolArray, frame: int, doubled: set[int]
) -> list[Line]:
    box, origin, code = chars.box, chars.origin, chars.code.copy()
    x0, y0, x1, y1 = page_to_frame(frame, box[:, 0], box[:, 1], box[:, 2], box[:, 3])
    base = (origin[:, 1], -origin[:, 0], -origin[:, 1], origin[:, 0])[frame]
    if frame == 1 and (chars.run_turn[chars.run] != 1).any():  # vertical writing
        base = y1
    size = chars.run_size[chars.run]
    code[(code == 2) | (code == 0xFFFE)] = 0x2D  # PDFium's marks for a hyphen at a line's end
    code[(code >= 0xF0A0) & (code <= 0xF0FF)] = 0x2022  # bullets of symbol fonts
    code[(code == 0xFFFF) | (code > 0x10FFFF)] = 0xFFFD
    n = len(code)
    larger = np.maximum(size[1:], size[:-1])
    rise = np.abs(base[1:] - base[:-1])
    gap = x0[1:] - x1[:-1]
    rtl = (code >= 0x0590) & (code <= 0x08FF) | (code >= 0xFB1D) & (code <= 0xFEFC)
    some_rtl = bool(rtl.any())
    if some_rtl:
        leftwards = rtl[1:] | rtl[:-1]
        gap = np.where(leftwards & (gap < -0.5 * larger), x0[:-1] - x1[1:], gap)
    starts = np.zeros(n, np.bool_)
    starts[0] = True
    starts[1:] = (rise > SUPERSCRIPT_SHIFT * larger) | (gap > WIDE_GAP * larger)
    # The letters of a ligature come one by one, all with the box of the whole.
    one_glyph = (x0[1:] == x0[:-1]) & (x1[1:] == x1[:-1]) & (rise == 0)
    starts[1:] |= (gap < -0.9 * larger) & ~one_glyph
    cjk = (code >= 0x2E80) & (code <= 0x9FFF) | (code >= 0xFF00) & (code <= 0xFFEF)
    space = np.zeros(n, np.bool_)
    between_cjk = cjk[1:] & cjk[:-1]
    space[1:] = (
        real[1:] & ~(between_cjk & (gap < 0.3 * larger))
        | (made[1:] & (gap > FALSE_GAP * larger) & ~between_cjk)
        | (gap > np.where(between_cjk, 0.6, WORD_GAP) * larger)
    )
    _close_stretched_gaps(starts, gap, rise, larger)
    space &= ~starts

    first = np.flatnonzero(starts)
    last = np.append(first[1:], n)
    _space_tight_lines(space, gap, size, cjk, first, last)
    # One string for the page, with the spaces in it; lines are slices.
    at = np.arange(n) + np.cumsum(space)
    letters = np.full(int(at[-1]) + 1, 32, np.uint32)
    letters[at] = code
    page_text = decode(letters)
    # Lists: a line takes some twenty single values, and those of an array come slowly.
    left = np.minimum.reduceat(x0, first).tolist()
    right = np.maximum.reduceat(x1, first).tolist()
    top = np.minimum.reduceat(y0, first).tolist()
    bottom = np.maximum.reduceat(y1, first).tolist()
    low, high = np.minimum.reduceat(size, first), np.maximum.reduceat(size, first)
    mixed, small = (low != high).tolist(), (high <= 1.45 * low).tolist()
    bold_run = chars.run_bold.copy()
    for run in doubled:
        bold_run[run] = True
    bold = bold_run[chars.run]
    mostly_bold = (np.add.reduceat(bold.astype(np.float32), first) / (last - first) > 0.7).tolist()
    starts_bold, ends_bold = bold[first].tolist(), bold[last - 1].tolist()
    text_from, text_to = at[first].tolist(), (at[last - 1] + 1).tolist()
    out: list[Line] = []
    exact = len(page_text) == len(letters)
    face = _faces(chars, bold_run)[chars.run]
    mixed = face[first] != face[last - 1]
    for k, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        span = slice(text_from[k], text_to[k])
        text = page_text[span] if exact else decode(letters[span])
        middle = (a + b) // 2
        main = a + _main_character(size[a:b], base[a:b]) if mixed[k] else a
        # Small capitals: the capitals tell the size of the heading.
        if mixed[k] and small[k] and text.isupper():
            main = a + int(size[a:b].argmax())
        run = int(chars.run[main])
        font = chars.fonts[int(chars.run_font[run])]
        line = Line(
            text=clean(text),
            x0=left[k],
            y0=top[k],
            x1=right[k],
            y1=bottom[k],
            base=float(base[main]),
            size=float(size[main]),
            bold=mostly_bold[k],
            italic=chars.fonts[int(chars.run_font[chars.run[middle]])].italic and font.italic,
            mono=font.mono,
            family=font.family,
            color=int(chars.run_color[run]) & 0xFFFFFF,
            frame=frame,
            part_bold=starts_bold[k] and not ends_bold[k],
        )
        if mixed[k] and exact:
            other = a + int((face[a:b] != face[a]).argmax())
            opening = chars.fonts[int(chars.run_font[chars.run[a]])]
            words = clean(page_text[int(at[a]) : int(at[other])])
            line.lead = Lead(words, bool(bold[a]), opening.italic, opening.family)
        # Boxes of some fonts are absurd (Type 3, broken metrics): hold them near the size.
        if line.height > 2.5 * line.size or line.height < 0.3 * line.size:
            line.y0, line.y1 = line.base - 0.8 * line.size, line.base + 0.2 * line.size
        if line.text:
            out.append(line)
    return put_together(out, some_rtl=some_rtl)


def _faces(chars: PageChars, bold_run: BoolArray) -> npt.NDArray[np.int64]:
    """A number a run, alike for runs of one family, weight and slant."""
    names: dict[tuple[str, bool], int] = {}
    of_font = [names.setdefault((f.family, f.italic), len(names)) for f in chars.fonts]
    return 2 * np.array(of_font, np.int64)[chars.run_font] + bold_run


def _close_stretched_gaps(
    starts: BoolArray,
    gap: npt.NDArray[np.float32],
    rise: npt.NDArray[np.float32],
    larger: npt.NDArray[np.float32],
) -> None:
    """Joins a justified line that is stretched so far that its word gaps look like columns.

    There all gaps are about as wide; the gap between two columns is far wider than those between
    words.
    """
    # Only gaps this wide end a line on their own account.
    level = rise <= SUPERSCRIPT_SHIFT * larger
    doubtful = np.flatnonzero(
        starts[1:] & level & (gap > WIDE_GAP * larger) & (gap < MAX_STRETCH * larger)
    )
    if not len(doubtful):
        return
    words = np.flatnonzero(~starts[1:] & (gap > WORD_GAP * larger))
    edges = np.flatnonzero(starts)
    for k in doubtful.tolist():
        at = int(np.searchsorted(edges, k + 1))
        start = int(edges[at - 1]) if at > 0 else 0
        end = int(edges[at + 1]) if at + 1 < len(edges) else len(starts)
        # The words of both sides; what a joined neighbour holds counts with the next gap.
        inner = gap[words[np.searchsorted(words, start) : np.searchsorted(words, end - 1)]]
        if len(inner) >= 1 and gap[k] <= 1.6 * float(np.median(inner)):
            starts[k + 1] = False


def _main_character(size: npt.NDArray[np.float32], base: npt.NDArray[np.float32]) -> int:
    """Index of the character whose size and baseline are the line's: of the commonest size.

    Scripts stand off the baseline, so that "10⁻⁶" is a 10 with something above it, however many
    characters that has.
    """
    rounded = np.rint(size * 4).astype(np.int64)
    main = int(np.flatnonzero(rounded == np.bincount(rounded).argmax())[0])
    largest = int(size.argmax())
    if size[main] < 0.85 * size[largest] and abs(base[main] - base[largest]) > 0.1 * size[largest]:
        return largest
    return main


def _space_tight_lines(
    space: BoolArray,
    gap: npt.NDArray[np.float32],
    size: npt.NDArray[np.float32],
    cjk: BoolArray,
    first: npt.NDArray[np.intp],
    last: npt.NDArray[np.intp],
) -> None:
    """Spaces for long lines without any: letters set tight make the gaps between words small."""
    spaces = np.add.reduceat(space.astype(np.int32), first)
    for k in np.flatnonzero((spaces == 0) & (last - first > 14)).tolist():
        a, b = int(first[k]), int(last[k])
        if cjk[a:b].any():
            continue
        gaps = gap[a : b - 1]
        limit = np.maximum(np.median(gaps) + 0.1 * size[a + 1 : b], 0.06 * size[a + 1 : b])
        space[a + 1 : b] = gaps > limit
