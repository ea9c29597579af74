"""What a cell is called by what was given for it."""

from __future__ import annotations

import pytest

from nonmember.runtime.naming import settings_of_folder


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("data.domain=scipy,data.half=a,method.distillation.lambda_=0.3", "domain=scipy half=a lambda=0.3"),
        ("model@target=micro_target,score@method.score=loss,seed=2", "target=micro_target score=loss seed=2"),
        ("data.num_documents=null,method.scores=_a,b_", "num_documents=null scores=_a,b_"),
        ("method.rate=0.2532155603031139", "rate=0.2532"),
        ("prism-docs-SmolLM2-1a2b3c4d", "prism-docs-SmolLM2-1a2b3c4d"),
    ],
)
def test_a_cell_is_called_by_what_was_given_for_it(folder, words):
    assert " ".join(settings_of_folder(folder)) == words
