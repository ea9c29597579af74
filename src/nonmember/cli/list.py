"""`nonmember list models|methods|data|sweeps|worlds`: what there is to choose from, a line each."""

from __future__ import annotations

import difflib
import sys

from nonmember.config.choices import descriptions

KINDS = {
    "models": "model=NAME, model@target=NAME, model@reference=NAME",
    "methods": "method=NAME",
    "data": "data=NAME",
    "worlds": "world=NAME",
    "sweeps": "nonmember audit -m --config-name NAME",
    "experiments": "experiment=NAME",
    "scores": "score@method.score=NAME",
    "trainings": "training@method.distillation=NAME",
    "trainers": "trainer=NAME",
    "launchers": "launcher=NAME",
    "loggers": "logger=NAME, logger=[NAME,NAME]",
    "callbacks": "callbacks=[NAME,NAME]",
    "debug": "debug=NAME",
    "hparams_search": "nonmember audit -m hparams_search=NAME",
    "reports": "nonmember report report=NAME",
}
HELP = f"""nonmember list KIND [WORD]: what there is to choose from, a line each; with WORD only lines that have it.

{chr(10).join(f"  {kind:14} {use}" for kind, use in KINDS.items())}
"""


def main() -> None:
    """Print names and what they are."""
    kind, *words = sys.argv[1:] or ["--help"]
    if kind in ("-h", "--help"):
        sys.stdout.write(HELP)
        return
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        raise ValueError(
            f"There is no list of {kind}{f'; did you mean {near[0]}?' if near else '.'} There are {', '.join(KINDS)}."
        )
    titled = descriptions(kind if kind in ("data", "callbacks") else kind.removesuffix("s"))
    width = max(len(name) for rows in titled.values() for name in rows)
    words = [word.lower() for word in words]
    for title, rows in titled.items():
        wanted = {name: what for name, what in rows.items() if all(word in f"{name} {what}".lower() for word in words)}
        if wanted and len(titled) > 1:
            sys.stdout.write(f"{title}\n")
        sys.stdout.write("".join(f"  {name:{width}}  {what}\n" for name, what in wanted.items()))
    sys.stdout.write(f"\nUse: {KINDS[kind]}\n")
