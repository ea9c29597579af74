"""The numbers printed in the KDS poster, with the digits it prints. Nothing here is ours.

Correlation of the score with the share of a set that was read. Its last column is the mean over the sets that have a
number, so rows with missing ones do not compare.
"""

from __future__ import annotations

from nonmember.reports.core.published import PublishedTable, read

SOURCE = "KDS, as printed in the poster"

# Spearman / Pearson, Mistral-7B-Instruct-v0.2 by the authors' scripts; members are older than non-members.
TABLE_1 = read("""
                       WikiMIA      BookMIA       ArXivTection average
    zlib             | .968/.960    -1.000/-.997  .997/.918    .322/.294
    zlib + FSD       | .976/.966    -.888/-.895   .941/.947    .343/.339
    perplexity       | .933/.929    .964/.967     1.000/.997   .966/.964
    perplexity + FSD | .979/.967    -.777/-.824   .992/.982    .398/.375
    Min-K%           | .893/.899    .998/.992     1.000/.998   .964/.964
    Min-K% + FSD     | .932/.937    -.526/-.640   .988/.980    .459/.420
    Min-K%++         | -.790/-.833  .             .996/.996    .103/.082
    Min-K%++ + FSD   | -.790/-.834  .             .754/.809    -.018/-.013
    SRCT             | .080/.073    .             .            .080/.073
    KDS              | .999/.993    .997/.979     .975/.974    .990/.982
""")

# One coefficient; members and non-members of one span of time.
TABLE_2 = read("""
                       Wiki   PhilPapers Enron  HN     CC     StackEx. average
    zlib             | .861   1.000      1.000  -.956  -.782  .990     .352
    zlib + FSD       | 1.000  .991       .999   .323   .894   .999     .868
    perplexity       | -.886  .999       .999   -.999  -.251  .999     .144
    perplexity + FSD | 1.000  .990       .999   .118   .908   1.000    .836
    Min-K%           | -.645  .996       1.000  -.955  .690   .999     .348
    Min-K% + FSD     | .997   .952       .997   .421   .908   1.000    .879
    Min-K%++         | -.482  .960       -.842  .561   .514   .697     .235
    Min-K%++ + FSD   | -.536  .994       -.770  .705   -.358  .210     .041
    KDS              | .891   .982       1.000  .897   .895   1.000    .944
""")

OVER_AVAILABLE = (
    "The averages are over the sets that have a number: rows with a dash do not compare with the others. Min-K%++ ran "
    "out of memory on BookMIA, SRCT was run on WikiMIA alone."
)
UNSAID = (
    "Whether draws were averaged before correlating, what FSD was tuned on, and how SRCT became a score is not said; "
    "the scripts run one seed."
)
MISCOUNTED = "Printed averages of Min-K% + FSD that its own cells do not have (.465/.426)."
ONE_COEFFICIENT = "One coefficient is shown, and not said which."


def doubted(table: PublishedTable, row: str, column: str) -> bool:
    """Whether the numbers of a cell are probably slips."""
    return table is TABLE_1 and (row, column) == ("Min-K% + FSD", "average")
