"""The published sets of members and non-members: each config over a local folder that is laid out like the original."""

from __future__ import annotations

import csv
import functools
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

import tiny
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.config.safety import instantiate
from nonmember.methods.fsd import Fsd, overlap, shown_by
from nonmember.records import Corpus

# Articles that have a text of each length, as published: members and non-members.
LENGTHS = {32: (389, 387), 64: (284, 258), 128: (139, 111), 256: (49, 33)}
WORDS = ("of", "the", "Storm", "cup", "1987,", "(final)", "St.", "Élan", "won", "–", "open;", "day")


class Folder:
    """A folder with a data set, and what its maker knows: the article or book, and the label, of each text."""

    def __init__(self, path: Path, *overrides: str) -> None:
        self.path, self.overrides = path, overrides
        self.article: dict[str, str] = {}
        self.label: dict[str, int] = {}

    def remember(self, text: str, article: str, label: int) -> str:
        self.article[text], self.label[text] = article, label
        return text


def sentence(rng: random.Random, name: str, num_words: int) -> list[str]:
    return [name, *rng.choices(WORDS, k=num_words - 1)]


def wikimia(path: Path) -> Folder:
    """Texts cut behind so many words; a split per length; no word on which texts are of one article."""
    folder = Folder(path, *(f"data.sets.of_{length}.path={path}" for length in LENGTHS))
    rng = random.Random(0)
    articles = [
        (f"{'member' if label else 'other'}-{number}", label, sentence(rng, f"Cup{label}x{number}", 256))
        for label in (1, 0)
        for number in range(LENGTHS[32][1 - label])
    ]
    for length, sizes in LENGTHS.items():
        kept: Counter[int] = Counter()
        rows = []
        for article, label, words in articles:
            if kept[label] < sizes[1 - label]:
                kept[label] += 1
                # What follows a word, as punctuation does, is lost where a text is cut.
                text = " ".join(words[:length]).rstrip(",.;")
                rows.append({"input": folder.remember(text, article, label), "label": label})
        rng.shuffle(rows)
        (path / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path / "data" / f"WikiMIA_length{length}-00000-of-00001.parquet")
    return folder


def tection(path: Path, name: str, lengths: tuple[str, ...]) -> Folder:
    """Four versions of each passage, of which `Answer` names the printed one."""
    folder, rng = Folder(path, f"data.sets.path={path}", "data.sets.revision=null"), random.Random(1)
    path.mkdir()
    with (path / f"0_{name}_data.csv").open("w", newline="") as file:
        columns = ["Example_A", "Example_B", "Example_C", "Example_D", "Answer", "ID", "Label"]
        table = csv.DictWriter(file, [*columns, "Length"] if lengths else columns)
        table.writeheader()
        for number in range(40):
            title, label = f"On Cups, Part {number}", number % 2
            for length in (lengths or ("",)) * 6:
                answer = rng.choice("ABCD")
                row = {f"Example_{option}": f"Paraphrased {rng.random()}" for option in "ABCD"}
                printed = "Printed " + " ".join(sentence(rng, f"\n {length}{rng.random()}", 20))
                row[f"Example_{answer}"] = folder.remember(printed, title, label)
                table.writerow(
                    {**row, "Answer": answer, "ID": title, "Label": label} | ({"Length": length} if length else {})
                )
    return folder


def arxivtection(path: Path) -> Folder:
    return tection(path, "arXivTection", ())


def booktection(path: Path) -> Folder:
    return tection(path, "BookTection", ("small", "medium", "large"))


def bookmia(path: Path) -> Folder:
    folder, rng = Folder(path, f"data.sets.path={path}"), random.Random(2)
    path.mkdir()
    with (path / "book_data.jsonl").open("w") as file:
        for number in range(40):
            for piece in range(6):
                title, label = f"Book {number}.txt", number % 2
                text = folder.remember(" ".join(sentence(rng, f"Chapter{rng.random()}", 40)), title, label)
                row = {"book_id": number // 2, "book": title, "snippet_id": piece, "snippet": text, "label": label}
                file.write(json.dumps(row) + "\n")
    return folder


MAKERS: dict[str, Callable[[Path], Folder]] = {
    "wikimia": wikimia,
    "arxivtection": arxivtection,
    "booktection": booktection,
    "bookmia": bookmia,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Iterator[dict[str, Folder]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        yield {name: make(tmp_path_factory.mktemp("sets") / name) for name, make in MAKERS.items()}


@functools.cache
def composed(*overrides: str) -> Any:
    world = [] if any(text.startswith("world=") for text in overrides) else ["world=micro"]
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_directory()), version_base=None):
        return compose("audit", overrides=[*world, "method=fsd", *overrides])


def built(node: Any) -> Corpus:
    return tiny.build(instantiate(node))


def three(config: Any) -> dict[str, Corpus]:
    """Under test: members (suspect) and others (heldout); tuned on: unseen."""
    nodes = {"suspect": config.data.corpus, "heldout": config.data.heldout.corpus, "unseen": config.data.unseen.corpus}
    return {role: built(node) for role, node in nodes.items()}


def texts(*corpora: Corpus) -> list[str]:
    return sorted(document.text for corpus in corpora for document in corpus.documents)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_every_text_has_its_label_and_its_cluster(folders, name):
    folder = folders[name]
    data = composed(f"data={name}", *folder.overrides).data
    for role, label in (("members", 1), ("nonmembers", 0)):
        corpus = built(data.sets[role])
        assert texts(corpus) == sorted(text for text, found in folder.label.items() if found == label)
        of_article = defaultdict(set)
        for document in corpus.documents:
            of_article[folder.article[document.text]].add(document.cluster_id)
        assert all(len(clusters) == 1 for clusters in of_article.values()), "an article has one cluster"
        assert len({*map(str, of_article.values())}) == len(of_article), "a cluster is of one article"
        assert {document.domain for document in corpus.documents} == {name}
    assert (data.label, data.heldout.label, data.split_by) == (f"{name}-read", f"{name}-not-read", "cluster")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tuning"), zip(MAKERS, ["nonmembers", "both", "nonmembers", "both"], strict=True))
def test_no_article_is_on_both_sides(folders, name, tuning):
    folder = folders[name]
    config = composed(f"data={name}", f"data.tuning={tuning}", *folder.overrides)
    found = three(config)
    articles = {
        role: {folder.article[document.text] for document in corpus.documents} for role, corpus in found.items()
    }
    assert not articles["unseen"] & (articles["suspect"] | articles["heldout"])
    instantiate(config.method).check(found)
    if tuning == "both":
        assert texts(*found.values()) == sorted(folder.label)
    share = len(found["unseen"]) / len(folder.label) * (1 if tuning == "both" else 2)
    assert 0.15 < share < 0.45


@pytest.mark.slow
def test_the_papers_protocol_leaks_and_is_counted(folders):
    """docs/methods/fsd.md: 37% of the non-members under test are of an article of which another length is tuned on."""
    folder = folders["wikimia"]
    config = composed("data=wikimia", "data.split_by=document", *folder.overrides)
    found = three(config)
    tuned = {folder.article[document.text] for document in found["unseen"].documents}
    leaked = sum(folder.article[document.text] in tuned for document in found["heldout"].documents)
    assert overlap(shown_by(found["heldout"]), shown_by(found["unseen"])) == (0, leaked)
    assert leaked / len(found["heldout"]) == pytest.approx(0.37, abs=0.05)
    assert overlap(shown_by(found["suspect"]), shown_by(found["unseen"])) == (0, 0)
    with pytest.raises(ValueError, match=rf"{leaked} of {len(found['heldout'])} documents of the held-out set overlap"):
        instantiate(config.method).check(found)
    compat = instantiate(composed("method.compat=true").method)
    assert isinstance(compat, Fsd)
    compat.check(found)


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_wikimia_by_length(folders, length):
    folder = folders["wikimia"]
    data = composed("data=wikimia", f"labelled@data.sets=wikimia_{length}", f"data.sets.path={folder.path}").data
    members, others = (built(data.sets[role]) for role in ("members", "nonmembers"))
    assert ((len(members), len(others)), data.label) == (LENGTHS[length], f"wikimia_{length}-read")
    assert not set(members.doc_ids) & set(others.doc_ids)
    assert all(re.fullmatch(rf"wikimia:WikiMIA_length{length}:\d+", doc_id) for doc_id in members.doc_ids)


def test_booktection_of_one_length(folders):
    overrides = ["data=booktection", "labelled@data.sets=booktection_128", *folders["booktection"].overrides]
    members = built(composed(*overrides).data.sets.members)
    assert len(members) == 20 * 6
    assert all(re.match(r"Printed \n medium", document.text) for document in members.documents)


def test_a_subset_of_the_pile_by_name(tmp_path):
    """Its configuration and its splits, as LLM-DI's collection names them."""
    number = count()
    for name in ("wikipedia", "philpapers"):
        (tmp_path / name).mkdir()
        for split in ("train", "val"):
            rows = [{"text": f"{name} {split} {next(number)} " + "word " * 30} for _ in range(40)]
            pq.write_table(pa.Table.from_pylist(rows), tmp_path / name / f"{split}-00000-of-00001.parquet")
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n"
        + "".join(f"  - split: {split}\n    path: {name}/{split}-*\n" for split in ("train", "val"))
        for name in ("wikipedia", "philpapers")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    sets = [f"world.labelled.philpapers.{role}.source.path={tmp_path}" for role in ("members", "nonmembers")]
    near = [f"world.labelled.philpapers.{role}.near_duplicate_threshold=null" for role in ("members", "nonmembers")]
    config = composed("world=pythia", "data=pythia_fsd", "data.domain=philpapers", *sets, *near)
    found = three(config)
    assert {document.text[:16] for document in found["suspect"].documents} == {"philpapers train"}
    assert {document.text[:14] for role in ("heldout", "unseen") for document in found[role].documents} == {
        "philpapers val"
    }
    assert len(found["heldout"]) + len(found["unseen"]) == 40
    assert (config.data.split_by, config.data.label) == ("document", "philpapers-read")
    instantiate(config.method).check(found)


# -------------------------------------------------------------------------------------------- bad data


def test_a_set_that_looks_otherwise_is_refused_in_a_sentence(tmp_path):
    config = composed("data=bookmia", f"data.sets.path={tmp_path}")
    for change, told in (
        ({"label": None}, "has no column 'label'; its columns are 'book_id', 'book', 'snippet_id', 'snippet'"),
        ({"book": None}, "has no column 'book'; its columns are 'book_id', "),
        ({"snippet": None}, "has no column 'snippet'; its columns are 'book_id', "),
        ({"label": 2}, "has 0 rows (dropped on the way: {'label_other': 1})"),
    ):
        row = {"book_id": 0, "book": "A.txt", "snippet_id": 0, "snippet": "A text.", "label": 1} | change
        rows = [{column: value for column, value in row.items() if value is not None}]
        (tmp_path / "book_data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(ValueError, match=re.escape(told)) as refusal:
            built(config.data.sets.members)
        assert "\n" not in str(refusal.value)
