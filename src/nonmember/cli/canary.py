"""`nonmember canary make`: plants canaries in documents before they are published."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.runtime.naming import path_of
from nonmember.runtime.yaml_files import value_of

if TYPE_CHECKING:
    from nonmember.evidence.canaries import Making

HELP = """nonmember canary make: plants canaries in documents that are not yet published, for an exact test later.

  nonmember canary make documents=FILE_OR_FOLDER out=FOLDER
  nonmember canary make documents=FILE out=FOLDER kind=sampled target.path=FOLDER_OR_HUB_NAME
  nonmember canary make documents=FILE out=FOLDER kind=paraphrase paraphrases=FILE

Of every canary many variants are made; a secret key chooses one, which is put into the documents. FOLDER has then
documents.jsonl         what to publish, ids kept
canaries.private.json   what to keep secret: variants, choices, key (only you can read it; needed for each test)
commitment.txt          its hash: make it public, with a date, before anybody reads the documents

kind          random (words of the documents), sampled (continuations by a model), paraphrase (of whole documents)
canaries=10   independent canaries          variants=100   of each, one of which is published
copies=1      documents that each goes into     length=12   words of a random canary, most tokens of a sampled one
temperature=1.5   of sampling                  paraphrases=FILE   JSON Lines: id, and a list paraphrases
Other settings are those of `nonmember score`, such as data.text_field=body, model@target=endpoint or trainer=gpu.
How many canaries and copies are enough: nonmember plan pilot=canary
"""


def main() -> None:
    """Print where the files lie and what to do with each."""
    given = sys.argv[1:]
    if not given or any(word in ("-h", "--help") for word in given):
        sys.stdout.write(HELP)
        return
    if given[0] != "make":
        raise ValueError(f"Expected `nonmember canary make documents=FILE out=FOLDER`; got {given[0]!r}. See --help.")
    documents, out, making, overrides = _settings(given[1:])
    from nonmember.artifacts.store import Store
    from nonmember.config.build import build
    from nonmember.config.inputs import check_places
    from nonmember.config.runs import reading
    from nonmember.evidence.canaries import COMMITMENT, make, require_new

    require_new(folder := path_of(out))
    # In a store of its own: that of audits would keep what must stay secret.
    with (
        tempfile.TemporaryDirectory() as store,
        reading(documents, overrides, Store(Path(store))) as (config, corpus, builder),
    ):
        model = build(config.target) if making.kind == "sampled" else None
        check_places(model)
        made = make(making, folder, builder.get(corpus), builder, model)
    numbers = sorted(set(made.num_variants))
    where = f"in {making.copies} of" if making.copies <= made.num_documents else f"{making.copies} times in"
    sys.stdout.write(
        f"{len(made.num_variants)} canaries of {' to '.join(map(str, dict.fromkeys(numbers[:1] + numbers[-1:])))} "
        f"variants, each {where} {made.num_documents} documents.\n"
        f"publish        {made.documents}\n"
        f"keep secret    {made.private}\n"
        f"make public    {folder / COMMITMENT}   {made.commitment}\n"
        f"test a model   nonmember audit method=canary data=canaries data.path={made.private} "
        f"data.commitment={made.commitment} target.path=MODEL\n"
    )


def _settings(given: list[str]) -> tuple[str, str, Making, list[str]]:
    """Documents, folder, how canaries are made, and the settings of the documents and the model."""
    from nonmember.evidence.canaries import Making

    paths, own, overrides = dict[str, str](), dict[str, Any](), []
    names = [field.name for field in fields(Making)]
    for word in given:
        name, mark, value = word.partition("=")
        if name in ("documents", "out"):
            paths[name] = value
        elif name in names and mark:
            own[name] = value if name == "paraphrases" else value_of(name, value)
        else:
            overrides.append(word)
    if missing := [name for name in ("documents", "out") if not paths.get(name)]:
        raise ValueError(f"{missing[0]} is missing. Name it, as in nonmember canary make documents=FILE out=FOLDER.")
    has_model = any(word.startswith(("model", "target")) for word in overrides)
    return paths["documents"], paths["out"], Making.of(own, has_model=has_model), overrides
