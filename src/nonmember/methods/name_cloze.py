"""Name cloze: does the target know the masked name of a passage? (Chang et al., 2023; as DE-COP changed it)

One word of each passage is blank wherever it stands, and the target has to name it. Names that are famous, or that the
setting gives away, can be guessed by who never read the passage: so the suspect group is compared with a clean one, and
a control that knows nothing of the works is put beside it: the most frequent name of the corpus.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from nonmember.checks import Count, Number
from nonmember.corpora.names import BlankWord, Kind, blanked, choices, is_named
from nonmember.endpoints import Answer, Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.endpoints.asked import Asked
from nonmember.methods.asked import Unanswered, reads_as_refusal, share_of_readable, unanswered
from nonmember.methods.base import INVALID_CLAIM, DocumentGroup, Roles, ScoredDocuments, TestOutcome, Verdict, units
from nonmember.methods.comparison import FEWEST_UNITS, Comparison, TakesFew, by_unit, mean_by
from nonmember.methods.comparison import comparison as as_details
from nonmember.methods.details import INLINED, Details
from nonmember.records import Corpus, Document
from nonmember.records.groups import HELDOUT, SUSPECT, set_of
from nonmember.records.requirements import Access, Requirements
from nonmember.stats._arrays import numbered
from nonmember.stats.proportions import FEW, Hits, exact_where_few
from nonmember.stats.two_groups import GroupComparison

CLOZE = "cloze"  # column of scores.parquet
NO_WORD = "no word to leave blank"
IN_THE_TITLE = "the word left blank stands in the title or the author's name"
CONTROLS = {"most_frequent_name": "guessing the most frequent name"}

CLAIMS: dict[Verdict, str] = {
    "evidence_of_membership": (
        "{found} There is statistical evidence that the target knows the names of the suspect group better than those "
        "of the clean group. The two may differ in age and fame; about a single work this says nothing."
    ),
    "inconclusive": (
        "{found} That is not evidently more than of the clean group. It is the absence of extraction by this question "
        "and nothing else: not that the documents were not read."
    ),
    "score_only": "{found} There is no clean group to compare with, and names can be guessed: nothing follows.",
    "invalid": INVALID_CLAIM,
}


# What is asked -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClozeProbe(Probe):
    with_title: bool  # the work is named in the question
    max_new_tokens: int  # of the answer

    name = "name_cloze"

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        requests, reasons = [], {}
        words = choices([document.text for document in corpus.documents])
        for document, choice in zip(corpus.documents, words, strict=True):
            if choice is None:
                reasons[document.doc_id] = NO_WORD
            elif self.with_title and is_named(f"{document.title} {document.author}", choice):
                reasons[document.doc_id] = IN_THE_TITLE
            else:
                requests.append(self._request(document, choice))
        return Questions(tuple(requests), reasons)

    def _request(self, document: Document, choice: BlankWord) -> Request:
        title, author = (document.title, document.author) if self.with_title else ("", "")
        return Request(
            doc_id=document.doc_id,
            name=f"cloze-{choice.kind}",
            question=fill_in(blanked(document.text, choice), choice.kind, title, author),
            max_new_tokens=self.max_new_tokens,
            temperature=0.0,
            seed=0,
            expected=choice.word,
        )

    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        word = word_of(completion.text)
        valid = bool(word) and (is_tagged(completion.text) or not reads_as_refusal(completion.text))
        return ParsedAnswer(valid=valid, correct=valid and word == plain(request.expected), read=word)

    def value(self, answers: Sequence[Answer]) -> float:
        return share_of_readable(answers)


_TAG = re.compile(r"<(/?)name>", re.IGNORECASE)
_OWN_EXAMPLE = re.compile(r"(?<=\S)\s*\n\s*Input:")  # with which a model that continues text goes on


def is_tagged(text: str) -> bool:
    return _in_tags(text) is not None


def is_in_form(text: str) -> bool:
    """Whether it is a word in tags, or a single word and no more."""
    return is_tagged(text) or len(_answer_in(text).split()) == 1


def word_of(text: str) -> str:
    """What stands in the first tags, all of it; without tags the first word. As `plain` writes it.

    An example of the model's own behind its answer is none.
    """
    if (tagged := _in_tags(text)) is not None:
        return plain(tagged)
    return next((word for word in map(plain, _answer_in(text).split()) if word), "")


def _answer_in(text: str) -> str:
    return _OWN_EXAMPLE.split(text, maxsplit=1)[0]


def _in_tags(text: str) -> str | None:
    """None without tags; one that was not opened, or not closed, goes from the beginning, or to the end."""
    before, *rest = _TAG.split(_answer_in(text), maxsplit=2)
    if not rest:
        return None
    return before if rest[0] else rest[1]


def plain(text: str) -> str:
    """In small letters, with single blanks and without marks before and after."""
    return re.sub(r"^[\W_]+|[\W_]+$", "", " ".join(text.split())).casefold()


# What it means -------------------------------------------------------------------------------------------------------


class ClozeGroup(Unanswered):
    """Of one set. mean_of_units: of the works' shares of right names.   of_kind: kind of word -> num, num_right.
    share_as_told: of the answers, those of one word.   num_without_a_word, num_in_the_title: documents left out."""

    num_documents: int
    num_right: int
    num_units: int
    mean_of_units: float
    of_kind: Mapping[str, Mapping[str, int]]
    share_as_told: float | None
    num_without_a_word: int
    num_in_the_title: int


@dataclass(frozen=True, kw_only=True)
class ClozeDetails(Details):
    # Of the works of both sets, where there is clean text.
    comparison: Comparison | None = field(metadata=INLINED, default=None)
    mean_suspect: float | None = None  # mean share of right names over works, where there is none
    suspect: ClozeGroup  # the suspect set
    heldout: ClozeGroup | None = None  # the clean set
    controls: Mapping[str, Comparison]  # who knows nothing of the works -> the same comparison


@dataclass(frozen=True)
class NameCloze(TakesFew):
    with_title: bool  # the question names the work; documents whose word stands in its title are then left out
    max_new_tokens: Annotated[int, Count(1)]  # of an answer
    # Of answers that are a word in tags or a single word, below which the target does not do as it is told.
    min_valid_share: Annotated[float, Number("[0, 1]")]
    num_resamples: int  # of units, for the intervals; the first `num_few` are the paper's
    num_few: int
    alpha: float
    max_tokens: int  # none is cut

    name = "name_cloze"
    statistic_name = "right names"
    statistic_bounds = (-1.0, 1.0)
    claim = "membership"
    guarantee = "asymptotic"
    null_hypothesis = "The target gives as many of the names in suspect works as of those in clean ones."
    picture = "answers"
    details_type = ClozeDetails
    requirements = Requirements(
        access=Access.TEXT, documents=2, inputs=("heldout", "works", "titles", "follows"), questions=1, answer_tokens=16
    )

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect} | ({HELDOUT: roles.heldout} if roles.heldout is not None else {})
        probe = ClozeProbe(self.with_title, self.max_new_tokens)
        return {
            name: DocumentGroup(corpus, {CLOZE: Asked("target", roles.target, corpus, probe)})
            for name, corpus in corpora.items()
        }

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        untitled = [name for name, corpus in corpora.items() if not any(item.title for item in corpus.documents)]
        if self.with_title and untitled:
            raise ValueError(
                f"method.with_title=true names the work in each question, but no document of the {set_of(untitled[0])} "
                "has a title. Name the column (data.title_field), or set method.with_title=false."
            )

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """Over units. The statistic is the suspect group's mean less the clean group's; without one, its mean."""
        groups = {name: self._as_details(group, name) for name, group in documents.items()}
        hits, number = groups[SUSPECT]["num_right"], groups[SUSPECT]["num_documents"]
        reasons = list(self._reasons_against(groups))
        comparison, exact = None, dict[str, float]()
        if HELDOUT in documents and all(item["num_units"] >= 2 for item in groups.values()):
            less, more = (_hits_of(documents[name], name) for name in (HELDOUT, SUSPECT))
            exact = exact_where_few(less, more, self.alpha)
            suspect, clean = (by_unit(group, CLOZE, name)[1] for name, group in documents.items())
            comparison = self.compared(suspect, clean, rng)
        controls = self._controls(documents, rng) if comparison is not None else {}
        verdict: Verdict = "score_only"
        if reasons:
            verdict = "invalid"
        elif comparison is not None:
            above = max([comparison.p_value, *exact.values()]) < self.alpha and comparison.difference > 0
            verdict = "evidence_of_membership" if above else "inconclusive"
        mean = groups[SUSPECT]["mean_of_units"]
        return TestOutcome(
            statistic=comparison.difference if comparison else mean,
            p_value=comparison.p_value if comparison else np.nan,
            ci_low=comparison.ci_low if comparison else np.nan,
            ci_high=comparison.ci_high if comparison else np.nan,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict].format(found=f"{hits} of {number} names were given."),
            warnings=(
                *reasons,
                *(FEW.format(what=what, p=p) for what, p in exact.items()),
                *self._warnings(comparison, controls),
            ),
            details=ClozeDetails(
                comparison=as_details(comparison) if comparison else None,
                mean_suspect=None if comparison else mean,
                suspect=groups[SUSPECT],
                heldout=groups.get(HELDOUT),
                controls={name: as_details(item) for name, item in controls.items()},
            ),
            distribution=comparison.distribution if comparison else np.zeros(0),
        )

    def _reasons_against(self, groups: Mapping[str, ClozeGroup]) -> Iterator[str]:
        """Why the answers mean nothing; none where they do mean something."""
        for name, item in groups.items():
            if item["num_units"] < FEWEST_UNITS:
                yield f"The {set_of(name)} has {item['num_units']} works left; the test needs {FEWEST_UNITS}."
            if item["share_as_told"] is not None and item["share_as_told"] < self.min_valid_share:
                yield (
                    f"The target does not follow instructions: {item['share_as_told']:.1%} of its answers about the "
                    f"{set_of(name)} are a single word, and {self.min_valid_share:.0%} must be."
                )

    def _as_details(self, group: ScoredDocuments, name: str) -> ClozeGroup:
        answers = [item for (item,) in group.answers[CLOZE]]
        _, values = by_unit(group, CLOZE, name)
        kinds = Counter(item.request.name.removeprefix("cloze-") for item in answers)
        right = Counter(item.request.name.removeprefix("cloze-") for item in answers if item.parsed.correct)
        reasons = [item.reason for item in group.excluded.values()]
        return {
            "num_documents": len(answers),
            "num_right": right.total(),
            "num_units": len(values),
            "mean_of_units": float(values.mean()) if len(values) else np.nan,
            "of_kind": {kind: {"num": kinds[kind], "num_right": right[kind]} for kind in sorted(kinds)},
            "share_as_told": float(np.mean([is_in_form(item.completion.text) for item in answers]))
            if answers
            else None,
            "num_without_a_word": reasons.count(NO_WORD),
            "num_in_the_title": reasons.count(IN_THE_TITLE),
            **unanswered(group, CLOZE),
        }

    def _controls(
        self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator
    ) -> dict[str, GroupComparison]:
        """The same comparison for who knows nothing of the works."""
        expected = {
            name: [plain(item.request.expected) for (item,) in group.answers[CLOZE]]
            for name, group in documents.items()
        }
        # The first of equally frequent ones, as Counter keeps them in order.
        guess = Counter(word for words in expected.values() for word in words).most_common(1)[0][0]
        suspect, clean = (
            mean_by(units(group, name), np.array([word == guess for word in expected[name]], np.float64))[1]
            for name, group in documents.items()
        )
        return {"most_frequent_name": self.compared(suspect, clean, rng)}

    def _warnings(self, comparison: GroupComparison | None, controls: Mapping[str, GroupComparison]) -> Iterator[str]:
        if comparison is not None and np.isnan(comparison.p_value):
            yield (
                f"All works have the same share of right names, {comparison.mean_first:.3f} in the suspect and "
                f"{comparison.mean_second:.3f} in the clean group: t is undefined."
            )
        for name, control in controls.items():
            if control.p_value < self.alpha and control.difference > 0:
                yield (
                    f"The suspect group's words are easier for who has not read it: {CONTROLS[name]} is right in "
                    f"{control.mean_first:.3f} of it and {control.mean_second:.3f} of the clean group "
                    f"(p = {control.p_value:.2g})."
                )


def _hits_of(documents: ScoredDocuments, group: str) -> Hits:
    """Right names of each work."""
    rows = numbered(units(documents, group))
    return Hits(np.bincount(rows, documents.values[CLOZE]).astype(np.int64), np.bincount(rows))


# The prompt: structure after Chang et al. (2023), in our own words ----------------------------------------------------


_TASK = (
    "You have seen the passage below in your training data. One {what} was taken out of it, and [MASK] stands wherever "
    "it was. Which {what} belongs in the place of [MASK]?\n"
    "Answer with exactly one word. It must be {a_what}, not a pronoun and no other kind of word. You have to give an "
    "answer: if you are not sure, guess.{work}\n\n"
)
_EXAMPLES = {
    "name": (
        ('"If the kettle sings before [MASK] is home," said the old woman, "put it back and wait for her."', "Harriet"),
        ("The ferry was late again, so [MASK] sat down among the sacks and played to the gulls on his flute.", "Edwin"),
    ),
    "noun": (
        ("She hung the wet [MASK] over the back of a chair and moved it nearer to the fire.", "coat"),
        ("Nobody had crossed the [MASK] since the flood, and grass grew between its planks.", "bridge"),
    ),
}


def fill_in(blanked: str, kind: Kind, title: str, author: str) -> str:
    """title, author: of the work, which is named where there is one; empty: it is not."""
    noun = kind == "noun"
    what, a_what = ("word", "a word") if noun else ("proper name", "a proper name")
    work = f' The passage is from "{title}"{f" by {author}" if author else ""}.' if title else ""
    examples = "".join(
        f"Input: {passage}\nOutput: <name>{answer}</name>\n\n"
        for passage, answer in _EXAMPLES["noun" if noun else "name"]
    )
    return f"{_TASK.format(what=what, a_what=a_what, work=work)}{examples}Input: {blanked}\nOutput:"
