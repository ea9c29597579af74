"""`nonmember plant`: plants canaries in documents, or draws a hold-out, before they are published."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

from nonmember.runtime.naming import path_of
from nonmember.runtime.yaml_files import value_of

HELP = """nonmember plant: plants canaries in documents that are not yet published, for an exact test later.

  nonmember plant documents=FILE_OR_FOLDER out=FOLDER
  nonmember plant documents=FILE out=FOLDER kind=sampled target.path=FOLDER_OR_HUB_NAME
  nonmember plant documents=FILE out=FOLDER kind=paraphrase paraphrases=FILE

Of every canary many variants are made; a secret key chooses one, which is put into the documents. FOLDER has then
documents.jsonl         what to publish, ids kept
canaries.private.json   what to keep secret: variants, choices, key (only you can read it; needed for each test)
commitment.txt          its hash: make it public, with a date, before anybody reads the documents

kind          random (words of the documents), sampled (continuations by a model), paraphrase (of whole documents)
canaries=10   independent canaries          variants=100   of each, one of which is published
copies=1      documents that each goes into     length=12   words of a random canary, most tokens of a sampled one
temperature=1.5   of sampling                  paraphrases=FILE   JSON Lines: id, and a list paraphrases
Other settings are those of `nonmember score`, such as data.text_field=body, model@target=endpoint or trainer=gpu.

  nonmember plant holdout documents=FILE_OR_FOLDER out=FOLDER share=0.5 strata=author
A secret key draws the share of the documents (whole clusters: data.cluster_field) to publish; the others are kept:
published.jsonl, kept.jsonl, holdout.private.json (keep both secret), commitment.txt. Test: method=holdout.
strata        title, author, domain or length: the share is drawn of each by itself, which raises the test's power
Who publishes everything publishes kept.jsonl later: the test holds for models whose data were collected before.

The power that so many have is printed, by what reading moved canaries in our study (docs/studies/canaries.md).
"""


# copies -> by how many standard deviations between variants reading moved 12 random words in the micro world
SHIFTS = {1: 0.15, 2: 0.54, 4: 0.97, 8: 1.85, 16: 3.28}
NUMBERS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)  # of canaries
ERROR, POWER = 0.05, 0.9


def main() -> None:
    """Print where the files lie and what to do with each."""
    given = sys.argv[1:]
    if not given or any(word in ("-h", "--help") for word in given):
        sys.stdout.write(HELP)
        return
    if given[0] == "holdout":
        _holdout(given[1:])
        return
    from nonmember.config.build import build, check_places
    from nonmember.config.runs import reading
    from nonmember.evidence.canaries import COMMITMENT, Making, make, require_new

    paths, own, overrides = _split(given, [field.name for field in fields(Making)])
    has_model = any(word.startswith(("model", "target")) for word in overrides)
    making = Making.of(own, has_model=has_model)
    require_new(folder := path_of(paths["out"]))
    with reading(paths["documents"], overrides) as (config, corpus, builder):
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
        f"power          {_power(making.copies, len(made.num_variants), numbers[0])}\n"
        f"test a model   nonmember audit method=canary data=canaries data.path={made.private} "
        f"data.commitment={made.commitment} target.path=MODEL\n"
    )


def _holdout(given: list[str]) -> None:
    paths, own, overrides = _split(given, ["share", "strata"])
    from nonmember.config.runs import reading
    from nonmember.evidence.canaries import COMMITMENT, require_new
    from nonmember.evidence.holdout import FILES, KEPT, PUBLISHED, SHIFTS, holdout_power, make

    require_new(folder := path_of(paths["out"]), FILES)
    with reading(paths["documents"], overrides) as (_, corpus, builder):
        made = make(folder, builder.get(corpus), **own)
    (published, kept), clusters = made.num_documents, made.num_clusters
    found = {name: [holdout_power(shift, *clusters, ERROR) for shift in shifts] for name, shifts in SHIFTS.items()}
    powers = "; ".join(f"read {name} x: {own:.2f}, less a reference {less:.2f}" for name, (own, less) in found.items())
    sys.stdout.write(
        f"{published} documents of {clusters[0]} clusters published, {kept} of {clusters[1]} kept.\n"
        f"publish        {folder / PUBLISHED}\n"
        f"keep secret    {made.private} {folder / KEPT}\n"
        f"make public    {folder / COMMITMENT}   {made.commitment}\n"
        f"power          {powers}; at an error of {ERROR:g}, if reading moves them as in our study "
        "(docs/methods/holdout.md)\n"
        f"test a model   nonmember audit method=holdout data=holdout data.path={made.private} "
        f"data.commitment={made.commitment} target.path=MODEL\n"
    )


def _power(copies: int, number: int, variants: int) -> str:
    """Of the test on a model that reads them, and how many canaries would be enough, in words."""
    from nonmember.stats.canaries import canary_power

    known = max(item for item in SHIFTS if item <= copies)

    def power(canaries: int) -> float:
        return canary_power(SHIFTS[known], canaries, variants, alpha=ERROR)

    enough = next((item for item in NUMBERS if power(item) >= POWER), None)
    return (
        f"{power(number):.2f} at an error of {ERROR:g}, if reading moves them as it moved 12 random words in {known} "
        f"cop{'ies' if known > 1 else 'y'} (docs/studies/canaries.md); for {POWER:g} "
        f"{enough or f'more than {NUMBERS[-1]}'} canaries are needed"
    )


def _split(given: list[str], names: list[str]) -> tuple[dict[str, str], dict[str, Any], list[str]]:
    """Documents and folder, settings of these names, and all others."""
    paths, own, overrides = dict[str, str](), dict[str, Any](), []
    for word in given:
        name, mark, value = word.partition("=")
        if name in ("documents", "out"):
            paths[name] = value
        elif name in names and mark:
            own[name] = value if name == "paraphrases" else value_of(name, value)
        else:
            overrides.append(word)
    if missing := [name for name in ("documents", "out") if not paths.get(name)]:
        raise ValueError(f"{missing[0]} is missing. Name it, as in nonmember plant documents=FILE out=FOLDER.")
    return paths, own, overrides
