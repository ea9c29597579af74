"""Methods as tests ask them, on tiny models: what a test is about it sets by `dataclasses.replace`."""

from __future__ import annotations

import tiny
from nonmember.methods import Decop, Fsd, Kds, LlmDi, NameCloze, OrderTest, Pacost, PairedT, PrefixCompletion, Prism
from nonmember.methods.prism.gates import PrismGates
from nonmember.models import Pretrained
from nonmember.scores import MinK, MinKPlusPlus, Perplexity

PRISM = Prism(
    score=MinKPlusPlus(0.2),
    distillation=tiny.distillation(),
    rank_metric="spearman",
    num_resamples=200,
    alpha=0.05,
    margin=0.0,
    max_tokens=64,
)
PRISM_GATES = PrismGates(
    min_ce_gain=0.02,
    min_kl_gain=0.0,
    max_kl_rise=0.2,
    max_nll_rise=0.35,
    max_rank_correlation=0.995,
    max_reference_gain=0.5,
    min_distinct=0.8,
    min_spread=0.02,
    min_delta=0.02,
    num_documents=30,
    min_characters=20,
    max_characters=200,
    docstrings=["numpy"],
    near_kl=0.15,
    max_target_gain=9.0,
    max_gain_of_start=90.0,
    min_third_delta=-0.01,
    min_third_agreement=0.3,
)
PAIRED_T = PairedT(score=MinKPlusPlus(0.2), distillation=tiny.distillation(), alpha=0.05, max_tokens=64)
ORDER = OrderTest(
    num_shards=20,
    max_examples=100,
    num_orders=5,
    window=64,
    stride=32,
    control=False,
    compat=False,
    alpha=0.05,
    max_tokens=64,
)
LLM_DI = LlmDi(
    perturbations=("butter_fingers",),
    reference_features=True,
    outliers="mean",
    tail_fraction=0.05,
    fit_size=100,
    num_splits=3,
    num_steps=50,
    learning_rate=0.01,
    compat=False,
    alpha=0.05,
    max_tokens=64,
)
KDS = Kds(
    training=tiny.pretraining(),
    layer=-1,
    bandwidth="per_kernel_median",
    gamma=None,
    baselines=[],
    fsd=None,
    order_test=None,
    compat=False,
    alpha=0.05,
    max_tokens=64,
)
FSD = Fsd(
    scores=[Perplexity(), MinK(0.2)],
    training=tiny.pretraining(),
    view="original",
    num_resamples=200,
    validation_share=0.3,
    num_folds=5,
    inverse_penalty=0.1,
    compat=False,
    alpha=0.05,
    max_tokens=64,
)
CLOZE = NameCloze(
    with_title=False, max_new_tokens=16, min_valid_share=0.95, num_resamples=40, num_few=10, alpha=0.05, max_tokens=512
)
PREFIX = PrefixCompletion(
    k=4,
    threshold=80,
    thresholds=[],
    tokenizer=None,
    new_tokens=2.0,
    prompt="instruction",
    num_permutations=199,
    alpha=0.05,
    max_tokens=512,
)
PACOST = Pacost(
    rephraser=Pretrained("the/rephraser"),
    rephrasings=None,
    temperature=0.1,
    max_new_tokens=20,
    min_length_ratio=0.5,
    max_length_ratio=2.0,
    min_answer_mass=0.05,
    alpha=0.05,
    max_tokens=30,
)
DECOP = Decop(
    paraphraser=Pretrained("the/paraphraser"),
    paraphrases=None,
    questions=None,
    passage_length="short",
    temperature=0.1,
    max_new_tokens=100,
    num_orders=4,
    work="book",
    exam="exam",
    reading="text",
    answer_tokens=4,
    top_logprobs=20,
    calibrate=False,
    min_valid_share=0.95,
    num_resamples=50,
    num_few=10,
    alpha=0.05,
    max_tokens=60,
)
