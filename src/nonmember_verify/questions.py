"""Is the question the one that was sealed, and do its parts belong together? And are these the documents?"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nonmember_verify.bundle import Audit
from nonmember_verify.commitments import commitment, root
from nonmember_verify.envelope import SEAL_PREDICATE, Refused, Signed, canonical, opened, plain, sha256
from nonmember_verify.known import draws_clusters
from nonmember_verify.report import Report, is_one_to_one, shown, some

KEY_LENGTH = 16  # hexadecimal digits of the store's hashes
SUSPECT = "suspect"
MOST_DRAWS = 2_000_000
RANGES = {  # of settings without which any number would be evidence: from the one to below the other
    "alpha": (0, 1),
    "margin": (0, 2),
    "max_invalid": (0, 1),
    "min_valid_share": (0, math.inf),
}
DATE = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ")
ZLIB_ROOM = 0.02
LEFT_OUT = b" left out]"  # what stands in the place of a path or a document


def key_hash(value: Any) -> str:
    """As the store calls what is determined by this."""
    return sha256(canonical(value))[:KEY_LENGTH]


def check_question(audit: Audit, report: Report) -> None:
    """Identity, settings and recipes against the hashes in the result, and against one another. Raises Refused where
    the settings ask for more work than any audit does."""
    for name in ("num_resamples", "num_permutations"):
        if (asked := audit.settings.get(name) or 0) > MOST_DRAWS:
            raise Refused(f"{name} is {asked:,}; the verifier makes at most {MOST_DRAWS:,}.")
    described, keys = audit.described, audit.result["provenance"]["keys"]
    identity = described["identity"]
    redacted = [name for name in described["redacted"] if LEFT_OUT in canonical(described[name])]
    cut = [role for role, item in described["recipes"].items() if "recipes" in redacted and LEFT_OUT in canonical(item)]
    if "identity" in redacted:
        report.unchecked("question", "paths were left out of it, so that its hash cannot be made again")
    else:
        found = key_hash(identity)
        report.require(
            "question",
            found == keys["audit"] == described["audit"],
            f"models, documents, settings and seed are those of audit {found}.",
            f"the question has the hash {found}, and the result answers {keys['audit']}: question or result was "
            "exchanged, or a setting or the seed was changed.",
        )
    _check_settings(audit, identity, report)
    recipes = described["recipes"]
    wrong = [role for role, item in recipes.items() if role not in cut and key_hash(item) != keys.get(role)]
    wrong += [role for role in audit.question["models"] if role not in recipes]
    if cut:
        report.unchecked("models", f"paths were left out of their recipes ({some(cut)}): no hash can be made again")
    if wrong or len(cut) < len(recipes):
        report.require(
            "models",
            not wrong,
            f"the recipes of {', '.join(role for role in recipes if role not in cut)} have the hashes in the result.",
            f"the recipe of {', '.join(wrong)} is not that of the model in the result.",
        )
    method, recipe, reference = identity["method"], recipes.get("distilled"), recipes.get("reference")
    if "distillation" in method and not method.get("sham") and recipe is not None and "distilled" not in cut:
        expected = {"teacher": recipes.get("target"), "corpus": identity["parts"]["corpus"], "seed": identity["seed"]}
        expected["recipe"] = method["distillation"]
        if reference is not None and recipe.get("base") != {"merged": reference}:
            expected["base"] = reference
        if wrong := [part for part, item in expected.items() if recipe.get(part) != item]:
            report.failed("models", f"the {', '.join(wrong)} of distilled is not that of the question.")
    if changed := [name for name, item in identity["parts"].items() if keys.get(name) != item]:
        report.failed("models", f"{', '.join(changed)} of the question is another one in the result.")


def _check_settings(audit: Audit, identity: Mapping[str, Any], report: Report) -> None:
    # The settings count as read where a check takes them into account, and not for being those of the question.
    stated = {"settings": plain(audit.settings), "seed": audit.question["seed"]}
    asked = {"settings": identity["method"], "seed": identity["seed"]}
    found = list(differences(asked, stated))
    for name, (low, high) in RANGES.items():
        value = audit.settings.get(name, low)
        if value is not None and (isinstance(value, bool) or not low <= value < high):
            found.append(f"{name} is {value!r}, and must be from {low:g} to below {high:g}")
    if audit.settings.get("method") != (method := audit.question["method"]):
        found.append(f"the method is {method}, and its settings are those of another")
    if audit.settings.get("alpha") != (alpha := audit.question["alpha"]):
        found.append(f"alpha is {alpha} in the result and {audit.settings.get('alpha')} in its settings")
    told = f"those of the question (alpha {audit.alpha:g}, seed {audit.question['seed']})."
    report.require_none("settings", found, told, "the result was made with others than it was asked with: ")


def differences(
    first: Any, second: Any, where: str = "", words: str = "{where} is {one} in the one and {other} in the other"
) -> Iterator[str]:
    """Places at which two JSON values differ, and how."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in dict.fromkeys([*first, *second]):
            yield from differences(first.get(name), second.get(name), f"{where}.{name}" if where else str(name), words)
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, pair in enumerate(zip(first, second, strict=True)):
            yield from differences(*pair, f"{where}[{index}]", words)
    elif first != second or isinstance(first, bool) != isinstance(second, bool):
        yield words.format(where=where, one=shown(repr(first)), other=shown(repr(second)))


# The seal -------------------------------------------------------------------------------------------------------------


def check_seal(files: Mapping[str, bytes], audits: list[Audit], signed: Signed, report: Report) -> Any:
    """Signature and date of the seal, and that every sealed cell is here and is the sealed one.

    Returns what it says."""
    if signed.predicate["seal"] is None and "seal.json" not in files:
        if any(audit.result["provenance"]["keys"].get("seal") or audit.described["receipt"] for audit in audits):
            report.failed("seal", "the audits were given a seal, and the bundle leaves it out.")
        else:
            why = "there is none: nothing shows that the question was fixed before the answer was known"
            report.unchecked("seal", why)
        return None
    if "seal.json" not in files:
        report.failed("seal", "the bundle names one, and it is missing.")
        return None
    try:
        seal = opened(files["seal.json"], SEAL_PREDICATE, "The seal")
    except ValueError as error:
        report.failed("seal", str(error))
        return None
    sealed, date, digest = seal.predicate["cells"], seal.predicate["date"], sha256(files["seal.json"])
    report.require(
        "seal",
        seal.fingerprint == signed.fingerprint,
        f"of {date}, signed by the bundle's key.",
        f"signed by another key ({seal.fingerprint}) than the bundle ({signed.fingerprint}).",
    )
    if signed.predicate["seal"] != digest:
        report.failed("seal", f"the statement names another one ({signed.predicate['seal']}).")
    why = f"{date} is the signer's word, unless you had the seal (sha256 {digest}) before the audit was run"
    report.unchecked("date of the seal", why)
    cells, by_key = ({cell[name]: cell for cell in sealed} for name in ("cell", "audit"))
    if len(cells) < len(sealed):
        report.failed("seal", "it fixes several questions under one name, so that any of them could be shown.")
    # A folder may have been given another name; the question is the same.
    found = [cells.get(item.cell) or by_key.get(item.described["audit"]) for item in audits]
    names = [cell["cell"] for cell in found if cell is not None]
    missing, twice = [name for name in cells if name not in names], [name for name in cells if names.count(name) > 1]
    problems = [f"{len(missing)} of {len(cells)} sealed audits were left out, first {missing[0]!r}"] if missing else []
    problems += [f"{name!r} is in the bundle more than once" for name in twice]
    report.require_none("cells", problems, f"all {len(cells)} sealed audits are in the bundle.")
    for audit, cell in zip(audits, found, strict=True):
        _check_sealed(audit, cell, seal, digest, report.under(audit.cell))
    return seal.predicate


def _check_sealed(audit: Audit, cell: Any, seal: Signed, digest: str, report: Report) -> None:
    described, receipt, date = audit.described, audit.described["receipt"], seal.predicate["date"]
    if cell is None:
        report.failed("seal", "this audit was not sealed.")
    elif audit.result["provenance"]["keys"].get("seal") != digest or receipt is None or receipt["seal"] != digest:
        why = "the audit was not given this seal when it was run: it was answered without one, and sealed afterwards."
        report.failed("seal", why)
    elif not DATE.fullmatch(receipt["started"]) or not DATE.fullmatch(date):
        report.failed("seal", "its date, or when the audit began, is not a date as in 2026-01-31T12:00:00Z.")
    elif receipt["started"] < date:
        report.failed("seal", f"it was made on {date}, after the audit began on {receipt['started']}.")
    else:
        parts = ("audit", "identity", "recipes", "thresholds")
        found = [
            *differences({name: cell[name] for name in parts}, {name: described[name] for name in parts}),
            *differences(seal.predicate["versions"], audit.result["provenance"]["versions"], "versions"),
        ]
        if receipt["audit"] != cell["audit"]:
            found.append(f"what the audit left when it began is of audit {receipt['audit']}")
        found += [f"the {item} set was not sealed" for item in described["documents"] if item not in cell["documents"]]
        # Where no distilled reference was made, nothing was measured beside the suspect set; the verdict tells why.
        is_unmade = "distilled" in described["recipes"] and "distilled" not in described["columns"][SUSPECT]
        for group, sealed in cell["documents"].items():
            if is_unmade and group != SUSPECT and group not in described["documents"]:
                continue
            if root(sealed["commitments"]) != sealed["root"]:
                found.append(f"the root of the sealed documents of the {group} set is not theirs")
            if sealed["commitments"] != described["documents"].get(group):
                found.append(f"the documents of the {group} set are not the sealed ones")
        units = {
            (name, document): unit
            for name, item in cell["documents"].items()
            for document, unit in zip(item["commitments"], item["units"], strict=True)
        }
        if not is_one_to_one((units.get((name, document)), unit) for document, (name, unit) in audit.units.items()):
            found.append("which documents belong together")
        told = "question, documents, models, settings, seed and versions are the sealed ones."
        report.require_none("seal", found, told, "not what was sealed: ")


# The documents --------------------------------------------------------------------------------------------------------


def check_documents(audit: Audit, report: Report) -> None:
    """Every committed document is scored or excluded with a reason, once, in order."""
    committed, excluded = audit.described["documents"], audit.result["exclusions"]["documents"]
    wrong = []
    for name, commitments in committed.items():
        left_out = excluded.get(name, {})
        scored = audit.groups[name].documents if name in audit.groups else []
        if len(set(commitments)) < len(commitments):
            wrong.append(f"a document of the {name} set is committed to twice")
        strange = [item for item in [*scored, *left_out] if item not in set(commitments)]
        missing = [item for item in commitments if item not in set(scored) and item not in left_out]
        if strange:
            wrong.append(f"{len(strange)} documents of the {name} set are not among the committed ones")
        if missing:
            wrong.append(f"{len(missing)} committed documents of the {name} set are neither scored nor excluded")
        if not strange and not missing and scored != [item for item in commitments if item not in left_out]:
            wrong.append(f"the documents of the {name} set stand in another order, or twice")
    wrong += [f"the {name} set has no commitments" for name in {**audit.groups, **excluded} if name not in committed]
    asked = audit.described["identity"]["parts"]
    wrong += [f"the question has no {name} set" for name in committed if part_of(name) not in asked]
    if "heldout" in asked and "heldout" not in committed:
        wrong.append("the heldout set of the question is not there")
    number = len(audit.groups[SUSPECT]) if SUSPECT in audit.groups else 0
    if audit.statistics["num_documents"] != number:
        wrong.append(f"the result counts {audit.statistics['num_documents']} documents, and {number} are scored")
    if audit.described["receipt"] is None and draws_clusters(audit):
        report.unchecked("clusters", "which documents belong together, and so count as one draw, is taken as stated")
    total = sum(map(len, excluded.values()))
    sizes = ", ".join(f"{len(items)} of the {name} set" for name, items in committed.items())
    report.require_none("documents", wrong, f"{sizes} are committed to; {total} are excluded, with reasons.")


def part_of(group: str) -> str:
    """As a question names the hash of a set's documents."""
    return "corpus" if group == SUSPECT else group


def check_opened(audit: Audit, documents: Iterable[tuple[str, str]], secret: bytes, report: Report) -> None:
    """The given documents (ids and texts) are the committed ones."""
    given = {commitment(secret, doc_id, text): text for doc_id, text in documents}
    _check_sizes(audit, given, report)
    committed = {item for commitments in audit.described["documents"].values() for item in commitments}
    if beyond := len(given.keys() - committed):
        report.unchecked("further documents", f"{beyond} of the {len(given)} given are in no set of this audit")
    for name, commitments in audit.described["documents"].items():
        found = sum(item in given for item in commitments)
        if name == SUSPECT or found:
            report.require(
                f"documents of the {name} set",
                found == len(commitments),
                f"all {found} are the committed ones.",
                f"{len(commitments) - found} of {len(commitments)} committed documents are not among the given ones.",
            )
        else:
            report.unchecked(f"documents of the {name} set", "none of them was given")


def _check_sizes(audit: Audit, texts: Mapping[str, str], report: Report) -> None:
    """Other makes of zlib compress a little otherwise."""
    stated = audit.sizes
    found = {item: len(zlib.compress(texts[item].encode("utf-8", "surrogatepass"))) for item in stated if item in texts}
    wrong = [
        f"of document {item[:12]}, {stated[item]} is stated and {size} comes out"
        for item, size in found.items()
        if abs(size - stated[item]) > 4 + ZLIB_ROOM * size
    ]
    if found:
        sentence = f"those of {len(found)} of {len(stated)} texts, within {ZLIB_ROOM:.0%}."
        report.require_none("compressed sizes", wrong, sentence)
