"""`nonmember canary make`: plants canaries in documents before they are published."""

from __future__ import annotations

import secrets
import sys
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from nonmember.checks import require_choice
from nonmember_verify.canaries import KEY_BYTES, KINDS

if TYPE_CHECKING:
    from nonmember.evidence.canaries import Variants
    from nonmember.records import Corpus

HELP = """nonmember canary make: plants canaries in documents that are not yet published, for an exact test later.

  nonmember canary make documents=FILE_OR_FOLDER out=FOLDER
  nonmember canary make documents=FILE out=FOLDER kind=sampled model.path=FOLDER_OR_HUB_NAME
  nonmember canary make documents=FILE out=FOLDER kind=paraphrase paraphrases=FILE

Of every canary many variants are made; a secret key chooses one, which is put into the documents. FOLDER has then
documents.jsonl         what to publish, ids kept
canaries.private.json   what to keep secret: variants, choices, key (only you can read it; needed for each test)
commitment.txt          its hash: make it public, with a date, before anybody reads the documents

kind          random (words of the documents), sampled (continuations by a model), paraphrase (of whole documents)
canaries=10   independent canaries          variants=100   of each, one of which is published
copies=1      documents that each goes into     length=12   words of a random canary, most tokens of a sampled one
temperature=1.5   of sampling                  paraphrases=FILE   JSON Lines: id, and a list paraphrases
Other settings are those of `nonmember score`, such as data.text_field=body, model=endpoint or trainer=gpu.
How many canaries and copies are enough: nonmember plan pilot=canary
"""


IDLE = {  # settings without a meaning, by kind
    "random": ("temperature",),
    "sampled": (),
    "paraphrase": ("canaries", "variants", "copies", "length", "temperature"),
}


@dataclass(frozen=True)
class Making:
    """What `canary make` is told."""

    documents: str
    out: str
    kind: str = "random"
    canaries: int = 10
    variants: int = 100
    copies: int = 1
    length: int = 12
    temperature: float = 1.5
    paraphrases: str | None = None


def main() -> None:
    """Print where the files lie and what to do with each."""
    given = sys.argv[1:]
    if not given or any(word in ("-h", "--help") for word in given):
        sys.stdout.write(HELP)
        return
    if given[0] != "make":
        raise ValueError(f"Expected `nonmember canary make documents=FILE out=FOLDER`; got {given[0]!r}. See --help.")
    making, overrides = _making(given[1:])
    from nonmember.evidence.canaries import COMMITMENT, DOCUMENTS, PRIVATE, plant, require_new, write

    key, folder = secrets.token_bytes(KEY_BYTES), Path(making.out).expanduser()
    require_new(folder)
    documents, variants = _made(making, overrides, key)
    planted, private = plant(documents, variants, key, kind=making.kind, copies=making.copies)
    commitment = write(folder, planted, private)
    numbers = sorted({len(item) for item in variants.values()})
    sys.stdout.write(
        f"{len(variants)} canaries of {' to '.join(map(str, {numbers[0]: 0, numbers[-1]: 0}))} variants, each in "
        f"{making.copies} of {len(documents)} documents.\n"
        f"publish        {folder / DOCUMENTS}\n"
        f"keep secret    {folder / PRIVATE}\n"
        f"make public    {folder / COMMITMENT}   {commitment}\n"
        f"test a model   nonmember audit method=canary data=canaries data.path={folder / PRIVATE} "
        f"data.commitment={commitment} target.path=MODEL\n"
    )


def _making(given: list[str]) -> tuple[Making, list[str]]:
    """Own settings, and those of the documents and the model."""
    names, own, overrides = [field.name for field in fields(Making)], dict[str, Any](), []
    for word in given:
        name, mark, value = word.partition("=")
        if name in names and mark:
            is_text = name in ("documents", "out", "paraphrases")
            own[name] = value if is_text else yaml.safe_load(value)
        else:
            overrides.append(word)
    if missing := [name for name in ("documents", "out") if not own.get(name)]:
        raise ValueError(f"{missing[0]} is missing. Name it, as in nonmember canary make documents=FILE out=FOLDER.")
    require_choice(kind := own.get("kind", "random"), KINDS, "kind")
    if idle := [name for name in IDLE[kind] if name in own]:
        raise ValueError(f"{idle[0]} has no meaning with kind={kind}. Leave it out.")
    if (kind == "paraphrase") != ("paraphrases" in own):
        raise ValueError("kind=paraphrase and paraphrases=FILE belong together; one of them was given alone.")
    if kind == "sampled" and not any(word.startswith(("model", "target")) for word in overrides):
        raise ValueError("kind=sampled needs a model that writes the variants. Name it: model.path=FOLDER_OR_HUB_NAME.")
    return Making(**own), overrides


def _made(making: Making, overrides: list[str], key: bytes) -> tuple[Corpus, Variants]:
    from nonmember.artifacts.store import Store
    from nonmember.config.build import build
    from nonmember.config.inputs import check_places
    from nonmember.config.runs import reading
    from nonmember.evidence.canaries import paraphrases_in, random_variants, sampled_variants

    size = {"canaries": making.canaries, "variants": making.variants, "length": making.length}
    # In a store of its own: that of audits would keep what must stay secret.
    with (
        tempfile.TemporaryDirectory() as folder,
        reading(making.documents, overrides, Store(Path(folder))) as (config, corpus, builder),
    ):
        documents = builder.get(corpus)
        if making.paraphrases is not None:
            return documents, paraphrases_in(Path(making.paraphrases).expanduser(), documents)
        if making.kind == "random":
            return documents, random_variants(documents, key, **size)
        model = build(config.target)
        check_places(model)
        return documents, sampled_variants(documents, key, builder, model, **size, temperature=making.temperature)
