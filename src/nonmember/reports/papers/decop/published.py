"""The numbers printed in the DE-COP paper, with the digits it prints. Nothing here is ours.

What it calls AUC is the area under the ROC curve of values that were thresholded first: best balanced accuracy. Each is
a mean over ten resamples of the works, with its standard deviation.
"""

from __future__ import annotations

from nonmember.reports.core.published import PublishedTable, read

SOURCE = "DE-COP, as printed in the paper"

# Papers of arXivTection: best balanced accuracy with standard deviation, and p.
TABLE_1 = read("""
                 accuracy    p
    Claude-2.1  | .908/.038  3.13e-29
    LLaMA-2-70B | .726/.041  1.039e-12
    Mixtral     | .736/.089  5.504e-07
""")

# BookTection-128: best balanced accuracy with standard deviation. GPT-3 on 70 of the books only.
TABLE_2 = read("""
                 Mistral-7B   Mixtral      LLaMA-2-13B  LLaMA-2-70B  GPT-3        mean
    Perplexity | .724/.0192   .829/.0142   .783/.0226   .892/.0287   .874/.0302   .820
    Zlib       | .599/.0300   .690/.0315   .630/.0441   .747/.0285   .779/.0253   .689
    Lowercase  | .846/.0294   .889/.0166   .880/.0270   .927/.0240   .957/.0194   .900
    Min-K%     | .763/.0211   .844/.0126   .798/.0153   .895/.0147   .898/.0276   .840
    DE-COP     | .901/.0139   .968/.0150   .900/.0134   .972/.0085   .863/.0306   .921
""")

# p of the same, by a t-test over all resamples together, which counts every book ten times.
TABLE_11 = read("""
                 Mistral-7B  Mixtral   LLaMA-2-13B  LLaMA-2-70B  GPT-3
    Perplexity | 1.92e-13    7.32e-24  3.28e-17     2.14e-30     1.13e-24
    Zlib       | .313        1.39e-8   .001         6.72e-15     2.59e-15
    Lowercase  | 1.54e-13    5.56e-14  7.46e-12     2.82e-18     7.46e-20
    Min-K%     | 7.30e-13    2.59e-22  3.32e-16     1.57e-26     6.48e-32
    DE-COP     | 5.66e-24    7.21e-44  1.92e-30     3.54e-42     3.07e-9
""")

# Mean share of right answers (or of passages reproduced) in the suspect books of BookTection-128.
TABLE_3 = read("""
                      ChatGPT  Claude-2.1  mean
    Completion (32) | .0142    .0799       .0471
    Completion (50) | .0077    .0362       .0220
    Name cloze      | .3107    .3870       .3488
    DE-COP          | .7201    .7340       .7271
""")

# Claude 2.1 on BookTection-128, by the model that wrote the paraphrases.
TABLE_4 = read("""
                 accuracy
    Claude-2.0 | .948/.013
    ChatGPT    | .884/.001
""")

# Clean books whose letters have calibrated means in [.15, .35].
TABLE_12 = read("""
                  well-calibrated
    ChatGPT     | 1.00
    LLaMA-2-70B | .65
""")

# Seconds for one book: LLaMA-2-70B, and ChatGPT.
TABLE_13 = read("""
                      LLaMA-2-70B  ChatGPT
    Perplexity      | 14           .
    Zlib            | 14           .
    Lowercase       | 14           .
    Min-K%          | 15           .
    Completion (32) | .            30
    Completion (50) | .            35
    Name cloze      | .            17
    DE-COP          | 590          331
""")

NOT_A_ROC_AREA = "The paper calls this AUC; it is best balanced accuracy, its threshold chosen on the same values."
POOLED = "By a t-test over ten resamples pooled, which counts every book ten times; ours counts each once."
HUMANS = (
    "Figure 7, of people: .34 right on average, and more of them on recent books than on old ones. It cannot be made "
    "again here."
)


def of_decop(table: PublishedTable, model: str) -> tuple[str, ...]:
    """The cell of DE-COP itself under a model, empty where the paper has none."""
    return table.get("DE-COP", model)
