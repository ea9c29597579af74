"""Verdicts in words and signs."""

VERDICTS = {
    "evidence_of_non_membership": ("●", "not used"),
    "evidence_of_membership": ("▲", "used"),
    "inconclusive": ("○", "no answer"),
    "score_only": ("–", "score only"),
    "invalid": ("⊘", "invalid"),
}
TRUTHS = {"member": "member", "non_member": "non-member"}
