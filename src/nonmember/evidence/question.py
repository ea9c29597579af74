"""The question of an audit as plain data: all that a seal fixes, and that a bundle tells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder
from nonmember.audits.keys import identity_of
from nonmember.audits.question import Audit
from nonmember.audits.run import INVALID_EXCLUDED
from nonmember.evidence.redaction import Redaction
from nonmember.runtime.source import versions

WITHOUT_PATHS = Redaction({})


def question_of(audit: Audit, builder: Builder, keys: Mapping[str, str], cell: str) -> dict[str, Any]:
    """keys: of the audit (`audits.keys.audit_keys`).   cell: name of its folder.

    identity: what its key is the hash of: hashes of models and documents by role and group, the method with all its
    settings, the seed.   recipes: of each model, what its hash is made of (hashes of weights or a commit on the hub, or
    how it was trained).   thresholds: of the audit itself, beside those of the method.   redacted: which of these had
    paths or documents in them, which are left out.
    """
    identity = identity_of(audit, {name: item for name, item in keys.items() if name not in ("audit", "seal")})
    models = {**audit.models, **audit.compared_with()}
    recipes = {role: dict(model.key(builder)) for role, model in models.items()}
    asked = {
        "cell": cell,
        "audit": keys["audit"],
        "identity": identity,
        "recipes": recipes,
        "thresholds": {"max_layout_auc": audit.max_layout_auc, "max_excluded": INVALID_EXCLUDED},
    }
    plain = json.loads(json.dumps(asked, allow_nan=False))
    redacted: dict[str, Any] = WITHOUT_PATHS.of_json(plain)
    # Who checks is told that a hash cannot be made again from what is left.
    return {**redacted, "redacted": [name for name in ("identity", "recipes") if redacted[name] != plain[name]]}


@cache
def code() -> dict[str, str]:
    """Version of the program and a hash of its sources, so that an edited one is another one."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return {"nonmember": versions()["nonmember"], "sources": digest.hexdigest()}
