"""`nonmember advise`: ranks the methods for the available access and data."""

from __future__ import annotations

import sys
from typing import Any

from nonmember.runtime.terminal import console_of
from nonmember.runtime.yaml_files import value_of

HELP = """nonmember advise: which methods apply to your access and data, best first, with power, cost and command.

  nonmember advise access=weights documents=150 base=true
  nonmember advise access=text documents=300 heldout=same_draw titles=true follows=true input_price=1 output_price=4
  nonmember advise target.path=FOLDER_OR_HUB_NAME data.path=FILE heldout=same_draw      access is detected
  nonmember advise target.url=URL target.model=NAME data.path=FILE                      the endpoint is probed

access: none, text, top_logprobs, logprobs or weights.   heldout: none, same_draw or other_date.
documents, tokens (per text), input_price, output_price (per million tokens): numbers.   true or false: unseen,
known_read, reference, out_models, base, stand_in, order, works, titles, follows, canaries, holdout,
identifiers, rephraser.
The best three are printed; all=true lists every method with its costs. Words of `nonmember audit` are understood:
reference.path=..., data.heldout.path=..., method.controls.base.path=... docs/which-method.md has a worked answer.
"""
TARGET = "target."
HAS: dict[str, tuple[str, Any]] = {  # words of `nonmember audit` -> what one then has
    "reference.path": ("reference", True),
    "model@reference": ("reference", True),
    "data.heldout.path": ("heldout", "same_draw"),
    "method.controls.base.path": ("base", True),
}


def main() -> None:
    """Print the advice."""
    overrides = sys.argv[1:]
    if not overrides or any(word in ("-h", "--help") for word in overrides):
        sys.stdout.write(HELP)
        return
    from nonmember.advice.advise import as_text
    from nonmember.api.advising import advise

    given = arguments(overrides)
    everything = given.pop("all", False)
    sys.stdout.write(as_text(advise(**given), all=everything, width=console_of().width))


def arguments(overrides: list[str]) -> dict[str, Any]:
    """Of `nm.advise`, from key=value words. Raises ValueError for other words."""
    given: dict[str, Any] = {}
    target, words = dict[str, Any](), dict[str, str]()
    for word in overrides:
        key, mark, value = word.lstrip("+").partition("=")
        if not mark or not value or key.startswith("-"):
            raise ValueError(
                f"Expected key=value, without dashes, as in documents=150; got {word!r}. --help lists all keys."
            )
        if key.startswith(TARGET):
            target[key.removeprefix(TARGET)] = value
        elif key == "data.path":
            given["documents"] = value
        elif key in HAS:
            given.update([HAS[key]])
            words[key] = word
        elif key == "model@target":
            continue  # target.url says the same
        else:
            given[key] = value_of(key, value)
    return given | ({"target": target} if target else {}) | ({"given": words} if words else {})
