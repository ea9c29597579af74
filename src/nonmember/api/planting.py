"""`nm.make_canaries`: what is done with texts before they are published."""

from __future__ import annotations

import os
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

from nonmember.api.inputs import Inputs, Overrides, at_work
from nonmember.artifacts.store import Store
from nonmember.config.build import build, check_places
from nonmember.config.runs import corpus_to_read
from nonmember.evidence import canaries
from nonmember.evidence.canaries import Making, PlantedCanaries
from nonmember.runtime.naming import path_of


def make_canaries(
    documents: Any, out: str | os.PathLike[str], *, model: Any = None, overrides: Overrides = (), **settings: Any
) -> PlantedCanaries:
    """Plants canaries in documents before they are published, for an exact test later: `nonmember plant`.

    Args:
        documents: Texts as in `nm.audit`.
        out: A new folder for what is published, what is kept secret, and the commitment.
        model: That samples the variants of kind="sampled", as in `nm.audit`.
        overrides: Anything else, as on the command line: `["data.text_field=body"]`, or key -> value.
        **settings: kind="random" ("sampled", "paraphrase" with paraphrases=FILE), canaries=10, variants=100, copies=1,
            length=12, temperature=1.5; and top-level keys of the config, such as trainer="gpu".

    Returns:
        The paths, and the commitment, which is to be made public before the documents are.

    Raises:
        ValueError: In one sentence, for what is missing or cannot be, and for a folder that has canaries already.

    Source: docs/methods/canary.md.

    >>> import nonmember as nm
    >>> texts = [" ".join(f"{a}{b}{c}{number}" for a in "mfrp" for b in "aei" for c in "ln") for number in "abcdefgh"]
    >>> made = nm.make_canaries(texts, "planted", canaries=3, variants=20)
    >>> made.private.name, made.num_variants
    ('canaries.private.json', (20, 20, 20))
    >>> found = nm.audit("canary", target="MODEL", data="canaries", overrides={"data.path": made.private,
    ...                  "data.commitment": made.commitment})  # doctest: +SKIP
    """
    names = [field.name for field in fields(Making)]
    own = {name: settings.pop(name) for name in names if name in settings}
    numbers = {name: value.item() for name, value in own.items() if hasattr(value, "item")}  # of NumPy
    making = Making.of(own | numbers, has_model=model is not None)
    inputs = Inputs.of(overrides, settings)
    inputs.add_model("target", model, argument="model")
    inputs.add_texts("documents", documents)
    folder = path_of(os.fspath(out))
    canaries.require_new(folder)
    # In a store of its own: that of audits would keep what must stay secret.
    with at_work(), tempfile.TemporaryDirectory() as store, inputs.composed("score") as (config, _):
        builder = inputs.builder_of(config, Store(Path(store)))
        corpus, sampler = corpus_to_read(config), build(config.target) if making.kind == "sampled" else None
        check_places(sampler)
        return canaries.make(making, folder, builder.get(corpus), builder, sampler)
