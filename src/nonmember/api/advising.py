"""`nm.advise`: which method, when."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from nonmember import advice
from nonmember.advice import Advice, Situation
from nonmember.advice.situation import about_texts, offered, past_audits
from nonmember.api.inputs import Inputs, at_work
from nonmember.config.build import build, check_places
from nonmember.config.runs import corpus_to_read
from nonmember.config.words import literal, override


def advise(
    *,
    target: Any = None,
    documents: Any = None,
    outputs: str | None = None,
    given: Mapping[str, str] | None = None,
    **situation: Any,
) -> Advice:
    """Which method could say what with what you have: a ranked list with measured power, costs and commands.

    Args:
        target: A model as in `nm.audit`, or settings of an endpoint, as {"url": ..., "model": ...}, which is then asked
            a few plain questions: what it offers is looked up. Else say `access`: none, text, top_logprobs, logprobs or
            weights.
        documents: How many texts, or the texts themselves, as in `nm.audit`: they are then counted.
        outputs: Where earlier audits lie, whose times are told ("outputs", or NONMEMBER_OUTPUTS).
        given: Further words that the commands repeat, by key: {"reference.path": "reference.path=FOLDER"}.
        **situation: Fields of `nonmember.advice.Situation`, such as heldout="same_draw", reference=True, base=True,
            order=True, input_price=0.15.

    Returns:
        Advice that, printed, is what `nonmember advise` prints.

    Raises:
        ValueError: In one sentence, for what cannot be.

    Source: Ours; the powers are those of the reports in docs/results.

    >>> import nonmember as nm
    >>> advice = nm.advise(access="weights", documents=150, base=True)
    >>> [option.name for option in advice.concluding]
    ['dose', 'prism', 'prism']
    """
    is_number = isinstance(documents, Integral)  # NumPy's too
    found: dict[str, Any] = {"documents": literal(documents)} if is_number else {}
    texts = None if is_number else documents
    inputs = Inputs.of((), {"outputs": outputs})
    inputs.add_model("target", target)
    inputs.add_texts("documents", texts)
    with at_work(), inputs.composed("score") as (config, _):
        if target is not None or texts is not None:
            builder = inputs.builder_of(config)
            if target is not None:
                model = build(config.target)
                check_places(model)
                found["access"] = offered(builder, model)
            if texts is not None:
                found |= about_texts(builder.get(corpus_to_read(config)))
        past = past_audits(Path(config.outputs) / "audits")
    return advice.advise(Situation.of(found | situation), past, _words(target, texts) | dict(given or {}))


def _words(target: Any, texts: Any) -> dict[str, str]:
    """What commands may repeat of what was given: key of the config -> word for a shell."""
    given: dict[str, Any] = {}
    if isinstance(target, str | os.PathLike):
        target = {"path": os.fspath(target)}
    if isinstance(target, Mapping):
        given |= {f"target.{name}": value for name, value in target.items()}
    if isinstance(texts, str | os.PathLike):
        given["data.path"] = os.fspath(texts)
    return {key: shlex.quote(override(key, value)) for key, value in given.items()}
