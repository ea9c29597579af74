"""Natural identifiers: what is found and left out, what is drawn, the score by hand, and the level."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binom, chisquare
from transformers import AutoModelForCausalLM, AutoTokenizer

import tiny
from command_line import only, write_rows
from nonmember.corpora import Identifiers
from nonmember.methods import IdentifierTest, Roles, ScoredDocuments
from nonmember.models import Pretrained
from nonmember_verify.identifiers import alternatives, find

METHOD = IdentifierTest(99, alpha=0.05, max_tokens=64)
SHA1 = hashlib.sha1(b"some 40 digits").hexdigest()
UUID4 = "3f2b8c1e-9d47-4a6c-8e15-b7a0d2c94f63"


def forms_of(text: str) -> list[tuple[str, str]]:
    return [(item.form, item.text) for item in find([("d", text)])[0]]


def test_each_form_is_found_and_what_chance_did_not_draw_is_left_to_the_context():
    wanted = [
        (f"sha1:{SHA1}.", "hash", SHA1),
        (f"0x{SHA1}", "hash", SHA1),
        (SHA1[:32].upper(), "hash", SHA1[:32].upper()),
        (f"{{{UUID4}}}", "UUID", UUID4),
        ("fixed by commit 83db48f", "commit", "83db48f"),
        ("(commits `83db48f1c2`)", "commit", "83db48f1c2"),
        ("sk-a8Kd02mXq7RtY3nBv5Ws then more", "key", "a8Kd02mXq7RtY3nBv5Ws"),
        (f"ghp_{'a8Kd02mXq7RtY3nBv5WsLp9Zc1Ed4F'}012345", "key", "a8Kd02mXq7RtY3nBv5WsLp9Zc1Ed4F"),  # checksum behind
        ("https://t.co/aB3dE9gH1j", "short URL", "aB3dE9gH1j"),
        ("https://youtu.be/dQw4w9WgXcQ", "video", "dQw4w9WgXc"),  # of the last character only four bits are free
    ]
    for text, form, string in wanted:
        assert forms_of(text) == [(form, string)], text
    nothing = [f"x{SHA1}", SHA1[:39], "see 83db48f", UUID4.replace("-4", "-1"), "youtu.be/dQw4w9WgXcQQ", "sk-short1A"]
    assert [forms_of(text) for text in nothing] == [[]] * len(nothing)


def test_what_is_left_out_is_counted():
    known = [hashlib.md5(b"").hexdigest(), hashlib.sha256(b"wombat").hexdigest()]
    genesis = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"  # no uniform draw begins with zeros
    texts = [
        f"{known[0]} of nothing, of wombat {known[1]}, digits {'31415926535897932384626433832795'}",
        f"{genesis} {'0123456789abcdef' * 2} 550e8400-e29b-41d4-a716-446655440000",
        f"First {SHA1}, then commit {SHA1[:8]} and {SHA1.upper()}; {SHA1[:30]}Ab",
    ]
    found, left_out = find((f"d{index}", text) for index, text in enumerate([*texts, SHA1]))
    assert [item.text for item in found] == [SHA1]
    assert left_out == {
        "a hash of known text": 2,
        "digits only": 1,
        "a row of characters, or an example": 3,
        "repeated": 3,
        "small and capital letters": 1,
    }


def test_alternatives_are_of_the_form_and_of_the_seed():
    found, _ = find([("d", f"{UUID4.upper()} {SHA1} t.co/aB3dE9gH1j")])
    drawn = {item.form + str(len(item.text)): alternatives(item, 200, 7) for item in found}
    assert all(
        re.fullmatch(r"[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}", i) for i in drawn["UUID36"]
    )
    assert all(len({*items}) == 200 for items in drawn.values())
    counts = np.bincount([int(digit, 16) for item in drawn["hash40"] for digit in item], minlength=16)
    assert chisquare(counts).pvalue > 1e-3
    again, other = (alternatives(found[0], 200, seed) for seed in (7, 8))
    assert again == drawn["UUID36"]
    assert not {*again} & {*other}
    short = find([("d", "in commit 83db48f")])[0][0]
    many = alternatives(short, 3000, 0)
    assert not any(item.isdigit() or item.isalpha() for item in many), "as no identifier that is found"
    bits = hashlib.shake_256(json.dumps([0, "commit:d:10", 0, 0]).encode()).digest(56)
    by_hand = "".join("0123456789abcdef"[byte % 16] for byte in bits[7::8])  # the last byte of eight: 16 divides 256
    assert many[0] == by_hand == "09f23ec", "what one audit drew every other draws"


def test_a_uuid_without_dashes_keeps_its_version():
    item = find([("d", uuid.UUID(UUID4).hex)])[0][0]
    assert item.form == "hash"
    assert all(text[12] == "4" and text[16] in "89ab" for text in alternatives(item, 50, 0))


def test_level_of_a_model_that_likes_some_characters_better():
    """300 nulls of four identifiers, 19 alternatives each, under a bigram model drawn anew; exact p to its steps."""
    rejected = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        table = rng.normal(size=(128, 128))
        strings = [rng.bytes(20).hex(), str(uuid.UUID(bytes=rng.bytes(16), version=4)), rng.bytes(16).hex()]
        found, _ = find([(f"{seed}", f"a {' b '.join(strings)} commit {rng.bytes(4).hex()}")])

        def score(text: str, table: np.ndarray = table) -> float:
            codes = np.frombuffer(text.encode(), np.uint8)
            return float(table[codes[:-1], codes[1:]].sum())

        published = scored({item.name: [score(item.text)] for item in found})
        others = scored({item.name: [score(text) for text in alternatives(item, 19, seed)] for item in found})
        rejected += METHOD.test({"suspect": published, "alternatives": others}, rng).verdict != "inconclusive"
    assert binom.ppf(0.001, 300, 0.05) <= rejected <= binom.ppf(0.999, 300, 0.05)


def scored(values: dict[str, list[float]]) -> ScoredDocuments:
    pairs = [(name, value) for name, items in values.items() for value in items]
    ids = tuple(f"{name}#{index}" for index, (name, _) in enumerate(pairs))
    return ScoredDocuments(ids, {"target": np.array([value for _, value in pairs])}, tuple(name for name, _ in pairs))


def test_few_identifiers_are_warned_of():
    published = scored({"UUID:a:0": [0.0], "UUID:b:0": [0.0], "hash:b:9": [0.0]})
    others = scored({name: [-1.0] * 9 for name in ("UUID:a:0", "UUID:b:0", "hash:b:9")})
    found = METHOD.test({"suspect": published, "alternatives": others}, np.random.default_rng(0))
    assert (found.verdict, found.p_value) == ("evidence_of_membership", pytest.approx(1e-3))
    assert found.details.forms == {"UUID": 2, "hash": 1}
    assert found.warnings == ["Only 3 identifiers were found, which allow no p below 0.001."]


def test_the_score_is_the_sum_over_the_tokens_of_the_string(tmp_path, make_model):
    """Against transformers alone: the context is read and not scored."""
    corpus = tiny.texts(f"moss fern reed {SHA1} pine lark")
    folder = make_model()
    roles = Roles(Pretrained(str(folder)), Pretrained("the/reference"), corpus, 3)
    group = METHOD.groups(roles)["suspect"]
    value = group.measured["target"].measure(tiny.builder(tmp_path)).values.values[0]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    encoded = tokenizer(f"moss fern reed {SHA1}", return_offsets_mapping=True, return_tensors="pt")
    ids, start = encoded["input_ids"][0], len("moss fern reed ")
    with torch.no_grad():
        log_probs = torch.log_softmax(model(ids[None]).logits[0].double(), -1)
    ends = encoded["offset_mapping"][0][:, 1].tolist()
    by_hand = sum(log_probs[index - 1, ids[index]].item() for index in range(1, len(ids)) if ends[index] > start)
    assert value == pytest.approx(by_hand, rel=1e-5)
    assert sum(end > start for end in ends) > 10


def test_from_documents_to_what_others_verify(nonmember, make_model, tmp_path):
    strings = [SHA1, UUID4, "commit 83db48f1", SHA1[::-1], UUID4[::-1].replace("-", "")]
    rows = [{"id": f"a{index}", "text": f"moss fern lark {string} vole"} for index, string in enumerate(strings)]
    documents = write_rows(tmp_path / "own.jsonl", [*rows, {"id": "b", "text": f"again {SHA1} reed"}])
    words = ["audit", "method=identifiers", f"data.path={documents}", f"target.path={make_model()}", "logger=none"]
    said = nonmember(*words)
    assert said.status == 0, said.err
    result = only(Path("outputs"), "audits/*/*/result.json")
    found = json.loads(result.read_text())
    assert found["statistics"]["details"]["forms"] == {"hash": 3, "UUID": 1, "commit": 1}
    assert found["exclusions"]["dropped"] == {"repeated": 1}
    assert nonmember("bundle", result.parent, "--new-key", "my.key", "--out", "case.zip").status == 0
    said = nonmember("verify", "case.zip", "--documents", documents, "--secret", "case.zip.private")
    assert said.status == 0, said.out
    assert "ok           identifiers: the 5 are those of the documents" in said.out
    none = write_rows(tmp_path / "none.jsonl", [{"id": "c", "text": "moss fern reed"}])
    refused = nonmember(*words[:2], f"data.path={none}", *words[3:])
    assert "has 0 documents and identifiers needs at least 1" in refused.err


def test_both_parts_have_one_order():
    corpus = tiny.texts(f"a {SHA1} b", f"c {UUID4} d")
    published, drawn = (tiny.build(Identifiers(corpus, part, 3, 1)) for part in ("published", "alternatives"))
    assert [item.cluster_id for item in drawn.documents[::3]] == [item.cluster_id for item in published.documents]
    assert [item.pieces for item in published.documents] == [("a ", SHA1), ("c ", UUID4)]
