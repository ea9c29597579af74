"""A branch of a data set on the hub stands for one commit from its first reading on; the hub is played."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nonmember.config.compose import composed
from nonmember.config.revisions import kept_in, pin_branches

ARXIV = ["world=pythia", "data=pythia_fsd", "method=fsd", "data.domain=arxivtection"]


@pytest.fixture
def hub(monkeypatch):
    """The repositories that were asked for; its main branch moves with every request."""
    asked: list[tuple[str, str]] = []

    def dataset_info(self, path, *, revision):
        asked.append((path, revision))
        return SimpleNamespace(sha=f"{len(asked):040x}")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", dataset_info)
    return asked


def revisions(overrides, store):
    with composed("audit", overrides) as (config, _):
        pin_branches(config, kept_in(store))
        sets = config.data.corpus.base.base.source, config.data.heldout.corpus.base.base.source
        return {item.revision for item in sets}


def test_it_is_asked_once_and_the_answer_kept(hub, tmp_path):
    first = "1".zfill(40)
    assert revisions(ARXIV, tmp_path / "store") == {first}
    assert revisions(ARXIV, tmp_path / "store") == {first}, "although the branch has moved"
    assert hub == [("avduarte333/arXivTection", "main")]
    assert revisions(ARXIV, tmp_path / "another") == {"2".zfill(40)}


def test_what_no_set_is_read_from_is_not_asked_for(hub, tmp_path):
    with composed("audit", ["world=pythia", "data=pythia_fsd", "method=fsd", "data.domain=bookmia"]) as (config, _):
        pin_branches(config, kept_in(tmp_path))
        assert config.world.labelled.arxivtection.revision == "main"
    assert hub == []


def test_the_commit_stands_in_the_question_of_the_result(hub, tmp_path):
    from nonmember.config.runs import cell_of

    words = ["world=pythia", "data=bbc_monthly", "method=blind", "reference=null", f"store={tmp_path}"]
    with composed("audit", words) as (config, folder):
        audit = cell_of(config, folder).audit
    assert audit.data["revision"] == "1".zfill(40)
    assert str(audit.suspect.identity()).count("1".zfill(40)) == 1


def test_without_a_network_it_is_said_what_is_needed(monkeypatch, tmp_path):
    def unreachable(self, path, *, revision):
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", unreachable)
    said = r"Cannot read 'avduarte333/arXivTection' .* \(no route\)\. Check name, revision and network"
    with pytest.raises(ValueError, match=said):
        revisions(ARXIV, tmp_path)
    assert not (tmp_path / "revisions.json").exists()
