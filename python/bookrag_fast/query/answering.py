"""Map and Reduce by language model: partial answers over packed evidence, and one answer of them.

A model's answer counts for what it can show: marks of passages that it was shown become citations,
quoted from the book. One that claims to know and shows nothing is not given; the book's own
sentences are. A streamed answer cannot be taken back: without a mark it stands as not enough, and
one that breaks off is continued by the book's sentences.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from bookrag_fast.models.roles import Outcome, Role
from bookrag_fast.query.citing import MarkReader, cited, evidence_mark, unshown_numbers
from bookrag_fast.query.condensing import condensed
from bookrag_fast.query.extractive import Draft, extract_answer
from bookrag_fast.query.inquiry import Call, Inquiry
from bookrag_fast.query.model_text import enclosed
from bookrag_fast.query.packing import HEAD, Pack, packs
from bookrag_fast.query.pictures import PictureOf, describe_pictures
from bookrag_fast.query.plan import Evidence
from bookrag_fast.query.question import Question

__all__ = ["AnswerReply", "Part", "Writer"]

Say = Callable[[str], None]
Offline = Callable[[], Awaitable[Draft]]  # the answer without a model

_NUMBER = re.compile(r"\[?[Ee]?(\d{1,6})\]?")
_REDUCE = "reduce"
_MOST_TOLD = 5  # numbers in a note
_MOST_PACKS = 8  # calls of Map over one long selection
_SMALLEST_PACK = 500  # tokens of one of them, whatever the budget
_LARGEST_PACK = 1_000_000  # evidence for one answer was held to the budget when it was gathered
_ANSWER_TOKENS = 1024
_PARTIAL_TOKENS = 400
_PROMPT_TOKENS = 500  # the prompts' own words, at most
_LONGEST_ANSWER = 16_000  # characters
_LONGEST_PARTIAL = 2_400


def _numbers(value: object) -> object:
    """Numbers of passages as models write them: 3, "3", "E3", "[E3]"."""
    if not isinstance(value, list):
        return []
    found = [_NUMBER.fullmatch(str(v)[:20].strip()) for v in value[:100]]
    return [int(match.group(1)) for match in found if match]


class AnswerReply(BaseModel):
    """An answer from numbered passages."""

    answer: str = Field(description="with the mark of a passage, like [E3], behind what it says")
    citations: Annotated[list[int], BeforeValidator(_numbers)] = Field(
        default=[], description="numbers of the passages that the answer rests on"
    )
    enough: bool = Field(True, description="whether the passages answer the question")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a question with the evidence that speaks to it, by number, best first. So many of
    its passages are ``summaries`` of sections, in the place of what stands in them."""

    question: Question
    evidence: Sequence[tuple[int, Evidence]]
    summaries: int = 0


@dataclass(frozen=True, slots=True)
class _Partial:
    question: str
    text: str  # with marks of evidence
    numbers: list[int]
    enough: bool


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the answer to one question. ``say`` gets the answer's text as it comes, or is None
    for an answer that comes at once."""

    inquiry: Inquiry
    budget: int  # evidence tokens of one call
    picture_of: PictureOf | None
    say: Say | None

    @property
    def able(self) -> bool:
        return self.inquiry.models.role(Role.ANSWER) is not None

    async def answer(self, part: Part, offline: Offline) -> Draft:
        """From one set of passages: as many as fit, best first."""
        (pack, *_) = await self._packs(part) or [Pack("", {})]
        return await self._one(part, pack, offline)

    async def digest(self, part: Part, offline: Offline, *, summaries: bool) -> Draft:
        """From all passages of a long selection: partial answers, pack by pack, and one of them.
        With ``summaries`` those stand for sections that are too much to be read."""
        if summaries:
            part = await self._condensed(part)
        made = await self._packs(part, _MOST_PACKS, self._largest_pack)
        read = sum(len(pack.evidence) for pack in made)
        if read < len(part.evidence):
            self.inquiry.tracer.say(f"{read} of {len(part.evidence)} selected passages were read")
        if len(made) < 2:
            return await self._one(part, made[0] if made else Pack("", {}), offline)
        partials = await self.inquiry.work.map(
            lambda pack: self._partial(part.question, pack, offline=None), made
        )
        useful = [p for p in partials if p is not None]
        return await self._combine(part.question, useful, (), dict(part.evidence), offline)

    async def synthesise(
        self, question: Question, parts: Sequence[Part], synthesis: Sequence[str], offline: Offline
    ) -> Draft:
        """From partial answers to each part, made at once. A part whose model fails is answered by
        the book's sentences, alone."""

        async def partial(part: Part) -> _Partial | None:
            (pack, *_) = await self._packs(part) or [Pack("", {})]
            return await self._partial(part.question, pack, offline=part)

        partials = [p for p in await self.inquiry.work.map(partial, parts) if p is not None]
        evidence = {n: item for part in parts for n, item in part.evidence}
        return await self._combine(question, partials, synthesis, evidence, offline)

    # --- Map ------------------------------------------------------------------------------------

    async def _condensed(self, part: Part) -> Part:
        """Of a selection that its packs cannot hold, what they can."""
        tokens = _MOST_PACKS * self._room(part, self._largest_pack)
        books, old = self.inquiry.by_id(), [item for _, item in part.evidence]
        new = await self.inquiry.work.run(lambda: condensed(old, books, tokens, head=HEAD))
        summaries = len(set(map(_place, new)) - set(map(_place, old)))
        if not summaries:
            return part
        self.inquiry.tracer.say(f"too long to be read whole: of {summaries} sections the summaries")
        return Part(part.question, tuple(enumerate(new, 1)), summaries)

    @property
    def _largest_pack(self) -> int:
        return max(self.budget, _SMALLEST_PACK)

    def _room(self, part: Part, largest: int) -> int:
        """Tokens of passages that one call can hold."""
        room = self.inquiry.room(Role.ANSWER, part.question.text, _ANSWER_TOKENS)
        return min(room - _PROMPT_TOKENS, largest)

    async def _packs(self, part: Part, most: int = 1, largest: int = _LARGEST_PACK) -> list[Pack]:
        inquiry, books = self.inquiry, self.inquiry.by_id()
        seen = await describe_pictures(inquiry, part.question.text, part.evidence, self.picture_of)
        with inquiry.tracer.operator("Map") as note:
            room = self._room(part, largest)
            made = await inquiry.work.run(
                lambda: packs(part.evidence, books, room, most=most, pictures=seen)
            )
            note["packs"] = len(made)
            note["passages"] = sum(len(pack.evidence) for pack in made)
            if part.summaries:
                note["summaries"] = part.summaries
        return made

    async def _partial(
        self, question: Question, pack: Pack, *, offline: Part | None
    ) -> _Partial | None:
        """An answer from one pack, for `_combine`."""
        with self.inquiry.tracer.operator("Map") as note:
            call = self._call("map", question, pack.text, _PARTIAL_TOKENS, "it was left out")
            if offline is not None:
                call = self._call(
                    "map", question, pack.text, _PARTIAL_TOKENS, "quoted from the book instead"
                )
            reply = await self.inquiry.ask(call, AnswerReply, note) if pack.evidence else None
            if reply is not None:
                reader = MarkReader(pack.evidence, most=_LONGEST_PARTIAL, render=evidence_mark)
                text = reader.whole(reply.answer)
                numbers = _united(reader.cited, reply.citations, pack.evidence)
                if text and (numbers or not reply.enough):
                    return _Partial(question.text, text, numbers, reply.enough and bool(numbers))
        if offline is None or not offline.evidence:
            return None
        items = [item for _, item in offline.evidence]
        draft = await extract_answer(self.inquiry, question, items, self.budget)
        number_of = {(item.book, item.node_id): n for n, item in offline.evidence}
        numbers = [number_of[c.book, c.node_id] for c in draft.citations]
        marks = "".join(map(evidence_mark, dict.fromkeys(numbers)))
        return _Partial(question.text, f"{draft.text} {marks}".strip(), numbers, draft.enough)

    # --- Reduce ---------------------------------------------------------------------------------

    async def _one(self, part: Part, pack: Pack, offline: Offline) -> Draft:
        if not pack.evidence:
            if part.evidence:
                self.inquiry.tracer.say(
                    "no passage fits the answering model's context: quoted from the book instead"
                )
            return await offline()
        call = self._call(
            "answer", part.question, pack.text, _ANSWER_TOKENS, "quoted from the book instead"
        )
        return await self._write(call, pack.evidence, offline)

    async def _combine(
        self,
        question: Question,
        partials: Sequence[_Partial],
        synthesis: Sequence[str],
        evidence: Mapping[int, Evidence],
        offline: Offline,
    ) -> Draft:
        shown = {n: evidence[n] for p in partials for n in p.numbers if n in evidence}
        if not shown:
            return await offline()
        lines = [enclosed("part", p.text, question=p.question) for p in partials]
        call = Call(
            Role.ANSWER,
            _REDUCE,
            {
                "question": question.text,
                "task": "\n".join(f"- {s}" for s in synthesis) or "-",
            },
            "the partial answers stand as they are",
            max_tokens=_ANSWER_TOKENS,
            expected_tokens=200,
            values={"parts": "\n".join(lines)},
        )

        async def as_they_are() -> Draft:
            # Without marks: it may come behind what a streamed answer has marked.
            reader = MarkReader(shown, most=_LONGEST_ANSWER, render=lambda number: "")
            said = "\n".join(p.text for p in partials)
            text = reader.whole(said)
            enough = all(p.enough for p in partials)
            return Draft(text, cited(reader.cited, shown, said), enough and bool(reader.cited))

        return await self._write(call, shown, as_they_are)

    async def _write(self, call: Call, evidence: Mapping[int, Evidence], offline: Offline) -> Draft:
        said: Draft | None = None
        with self.inquiry.tracer.operator("Reduce") as note:
            if self.say is None:
                draft = await self._whole(call, evidence, note)
            else:
                draft, said = await self._streamed(call, evidence, note, self.say)
            if draft is not None:
                note["quoted"] = len(draft.citations)
                return self._held_against(draft, call)
        rest = await offline()
        if self.say is None or said is None:
            return rest
        self.say(f"\n\n{rest.text}")
        return Draft(f"{said.text}\n\n{rest.text}", [*said.citations, *rest.citations], rest.enough)

    def _held_against(self, draft: Draft, call: Call) -> Draft:
        """The draft, not enough if it states numbers that it was not shown. A reduction is there
        to calculate: its reader is told of them, no more."""
        shown = " ".join([*call.data.values(), *map(str, call.values.values())])
        numbers = unshown_numbers(draft.text, shown)
        if not numbers:
            return draft
        self.inquiry.tracer.say(
            f"in no passage that the model was shown, so calculated or invented: "
            f"{', '.join(numbers[:_MOST_TOLD])}"
        )
        return replace(draft, enough=draft.enough and call.prompt == _REDUCE)

    async def _whole(
        self, call: Call, evidence: Mapping[int, Evidence], note: dict[str, Any]
    ) -> Draft | None:
        reply = await self.inquiry.ask(call, AnswerReply, note)
        if reply is None:
            return None
        reader = MarkReader(evidence, most=_LONGEST_ANSWER)
        text = reader.whole(reply.answer)
        numbers = _united(reader.cited, reply.citations, evidence)
        # That the book does not tell needs no passage; but partial answers had theirs.
        if not text or (not numbers and (reply.enough or call.prompt == _REDUCE)):
            note["by"] = "rules"
            self.inquiry.tracer.say(
                f"the answering model named no passage that it was shown: {call.instead}"
            )
            return None
        return Draft(text, cited(numbers, evidence, text), reply.enough and bool(numbers))

    async def _streamed(
        self, call: Call, evidence: Mapping[int, Evidence], note: dict[str, Any], say: Say
    ) -> tuple[Draft | None, Draft | None]:
        """The draft, or None and what was said before the model failed, if anything was."""
        reader = MarkReader(evidence, most=_LONGEST_ANSWER)
        pieces: list[str] = []
        came: list[str] = []
        outcome: Outcome[str] = Outcome(None)

        def tell(text: str) -> None:
            if text:
                pieces.append(text)
                say(text)

        async for piece in self.inquiry.stream(call, note):
            if isinstance(piece, str):
                came.append(piece)
                tell(reader.feed(piece))
            else:
                outcome = piece
        tell(reader.end())
        text = "".join(pieces)
        if outcome.value is not None and outcome.value.strip() != "".join(came).strip():
            # What came was more than the answer: thoughts that nobody could know from it.
            reader = MarkReader(evidence, most=_LONGEST_ANSWER)
            text = reader.whole(outcome.value)
        if not text:
            return None, None
        draft = Draft(text, cited(reader.cited, evidence, text), bool(reader.cited))
        if outcome.value is None:
            return None, draft
        if not draft.enough:
            self.inquiry.tracer.say("the answer names no passage of the book")
        return draft, draft

    # --- what all share -------------------------------------------------------------------------

    def _call(
        self, prompt: str, question: Question, passages: str, max_tokens: int, instead: str
    ) -> Call:
        return Call(
            Role.ANSWER,
            prompt,
            {"question": question.text},
            instead,
            max_tokens=max_tokens,
            expected_tokens=150,
            values={"passages": passages},
        )


def _place(item: Evidence) -> tuple[str, int]:
    return item.book, item.node_id


def _united(
    marked: Sequence[int], listed: Sequence[int], evidence: Mapping[int, Evidence]
) -> list[int]:
    """Passages that were shown, those marked in the text first."""
    return [n for n in dict.fromkeys([*marked, *listed]) if n in evidence]
