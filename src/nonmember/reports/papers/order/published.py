"""Numbers of the order test that its authors published (Oren et al. 2024). Nothing here is ours."""

from __future__ import annotations

from nonmember.reports.core.published import read

SOURCE = "Oren et al., as printed in the authors’ reply to their reviewers"

# p of a model of 1.4 billion parameters that read the sets in their order, beside Wikitext.
DUPLICATION = read("""
                                   duplication p
    BoolQ                        | 1           0.156
    HellaSwag                    | 1           0.478
    MNLI                         | 10          1.96e-11
    MMLU professional law        | 50          1e-38
    MMLU high school psychology  | 100         1e-38
""")
ZERO = "1e-38 stands for a number that was 0 in their arithmetic."
