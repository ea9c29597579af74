"""A cell of a sweep, looked at before it is run: its question as specs, and what these need."""

from __future__ import annotations

from datetime import date

from omegaconf import DictConfig, OmegaConf

from nonmember.audits.question import Audit
from nonmember.config.build import build, build_audit
from nonmember.config.explain import explain
from nonmember.config.given import MARK, IncompleteQuestion, marks_in, open_keys
from nonmember.config.revisions import NOT_READ, pin_branches
from nonmember.feasibility.memory import Machine, TrainerSettings
from nonmember.feasibility.verdict import ASKS, UNKNOWN, CheckResult, check

SOME_ADDRESS = "http://address.invalid/v1"  # in the place of one that is not given


def check_cell(config: DictConfig, machine: Machine, today: date, *, is_open: bool = True) -> CheckResult:
    """What is missing is not asked for but named. is_open: whether anything may be missing."""
    pin_branches(config, lambda path, branch: NOT_READ)
    keys = open_keys(config) if is_open else []
    try:
        audit, missing = _question(config, keys)
        return check(audit, settings_of_trainer(config), build(config.asking), machine, today, missing)
    except ValueError as error:
        return CheckResult(ASKS if keys else UNKNOWN, (), (str(error).rstrip("."),))


def _question(config: DictConfig, keys: list[str]) -> tuple[Audit, list[str]]:
    """The question with marks in the place of what is open, and what of that it needs, in a sentence. Raises ValueError
    for a config that makes none."""
    addresses = [key for key in keys if key.endswith(".url")]
    if keys:
        config = config.copy()
        for key in keys:
            OmegaConf.update(config, key, SOME_ADDRESS if key in addresses else MARK + key)
        if any(marks_in(OmegaConf.select(config, "general"))):  # there or not: methods look
            OmegaConf.update(config, "general", None)
    try:
        audit = build_audit(config)
    except Exception as error:  # whatever Hydra makes of what a spec refuses, a mark perhaps
        raise ValueError(IncompleteQuestion("The audit", keys) if keys else explain(error)) from error
    needed = {*marks_in(audit.groups), *addresses} & {*keys}
    return audit, [str(IncompleteQuestion("the audit", needed)).rstrip(".")] if needed else []


def settings_of_trainer(config: DictConfig) -> TrainerSettings:
    trainer = config.trainer
    return TrainerSettings(
        micro_batch_size=trainer.micro_batch_size,
        max_batch_tokens=trainer.max_batch_tokens,
        cache_mib=trainer.cache_mib,
        logits_budget_mib=trainer.logits_budget_mib,
        block_mib=trainer.block_mib,
        mixed=not str(trainer.precision).startswith("32"),
        gradient_checkpointing=trainer.gradient_checkpointing,
    )
