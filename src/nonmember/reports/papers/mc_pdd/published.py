"""The numbers printed in the MC-PDD paper, with the digits it prints; rates in percent. Nothing here is ours.

Differences are those of non-members minus members, so that a negative one speaks for membership.
"""

from __future__ import annotations

from nonmember.reports.core.published import read

SOURCE = "MC-PDD, as printed in the paper"

# AUC over single documents, Llama-3.1-8B-Instruct.
TABLE_3 = read("""
                 WikiMIA  SteamMIA
    PPL        | 0.5424   0.7707
    Lowercase  | 0.4772   0.7602
    Zlib       | 0.5660   0.6644
    Min-K%     | 0.5500   0.7338
    Min-K%++   | 0.5052   0.5721
    DC-PDD     | 0.5694   0.7326
""")

# SteamMIA: games of 2024 (non-members) and 2014 (members).
TABLE_6 = read("""
                             non-members members difference p      upper
    Llama-3.1-8B-Instruct  | 36.26       48.50   -12.24     0.0001 -7
    Claude-3-Haiku         | 40.54       54.50   -13.96     0.0001 -8
    DeepSeek-V3-Chat       | 49.77       61.85   -12.08     0.0005 -7
    GPT-4o-mini            | 37.16       46.21   -9.05      0.0033 -4
    Llama-3-70B            | 43.92       58.06   -14.14     0.0001 -9
    Gemini-1.5-Flash       | 44.37       46.32   -1.95      0.2808 4
""")

# Of MC-PDD over groups of 150 documents, of all others over single ones.
TABLE_7 = read("""
                 accuracy AUC
    PPL        | 0.7113   0.7707
    Lowercase  | 0.7038   0.7602
    Small Ref  | 0.7794   0.7304
    Zlib       | 0.6360   0.6644
    Min-K%     | 0.6782   0.7338
    Min-K%++   | 0.5683   0.5721
    DC-PDD     | 0.6877   0.7326
    MC-PDD     | 0.7223   0.7595
""")

# BBC news of each March against March 2025, Qwen2.5-14B-Instruct.
TABLE_8 = read("""
              rate  upper p
    2017-03 | 36.75 -0.03 0.0005
    2018-03 | 36.31 -0.04 0.0002
    2019-03 | 36.16 -0.03 0.0001
    2020-03 | 35.78 -0.03 0.0003
    2021-03 | 31.72 0.01  0.1497
    2022-03 | 34.51 -0.02 0.0015
    2023-03 | 31.51 0.01  0.1622
    2024-03 | 29.03 0.03  0.8090
    2025-03 | 30.08 .     .
""")

# BBC news of February 2017 (members) against February 2025, Qwen2.5-14B-Instruct.
TABLE_9 = read("""
             non-members members upper p
    max    | 30.60       40.78   -0.08 0.0001
    random | 59.31       59.77   0.02  0.3814
""")

# arXiv of two months against February 2025, OLMo-7B-Instruct: the most specific or random words, so many of a document.
TABLE_10 = read("""
                          non-members members upper p
    2017-02, max, 1     | 3.05        6.67    -0.01 0.0030
    2017-02, max, 3     | 4.70        7.05    -0.01 0.0023
    2017-02, max, 5     | 4.94        6.83    -0.01 0.0013
    2018-02, max, 1     | 3.05        5.14    -0.00 0.0409
    2018-02, max, 3     | 4.70        6.33    -0.00 0.0219
    2018-02, max, 5     | 4.94        6.20    -0.00 0.0224
    2017-02, random, 1  | 7.63        9.78    0.01  0.1099
    2017-02, random, 3  | 9.04        10.02   0.01  0.1733
    2017-02, random, 5  | 8.78        8.98    0.01  0.4032
    2018-02, random, 1  | 7.63        9.88    0.01  0.0929
    2018-02, random, 3  | 8.17        8.87    0.01  0.2420
    2018-02, random, 5  | 9.21        8.40    0.02  0.8642
""")

# SteamMIA by the size of a resample: p, and the upper bound of the difference.
TABLE_11_P = read("""
                       400     350     300     250     200     150     100     50
    Claude-3-Haiku   | 0.00006 0.00016 0.0003  0.00112 0.00314 0.00888 0.02792 0.09776
    DeepSeek-V3-Chat | 0.00026 0.00074 0.00172 0.00392 0.00828 0.01954 0.04798 0.12998
    GPT-4o-mini      | 0.00502 0.00774 0.0135  0.02088 0.03554 0.0622  0.10874 0.20576
    Llama-3-70B      | 0.00006 0.00012 0.00024 0.0009  0.0029  0.00796 0.02668 0.09344
    Gemini-1.5-Flash | 0.30466 0.31838 0.33274 0.35146 0.37    0.38984 0.41948 0.46362
""")
TABLE_11_UPPER = read("""
                       400     350     300     250     200     150     100     50
    Claude-3-Haiku   | -0.0825 -0.0771 -0.0733 -0.068  -0.06   -0.0466 -0.02   0.02
    DeepSeek-V3-Chat | -0.0625 -0.06   -0.0533 -0.048  -0.04   -0.0266 -0.01   0.04
    GPT-4o-mini      | -0.035  -0.0286 -0.0233 -0.02   -0.01   0       0.02    0.08
    Llama-3-70B      | -0.0825 -0.08   -0.0733 -0.068  -0.06   -0.0467 -0.03   0.02
    Gemini-1.5-Flash | 0.0375  0.0429  0.0467  0.056   0.065   0.0733  0.1     0.14
""")

TABLE_12 = read("""
                             non-members members difference p      upper
    with the name          | 36.26       48.50   -12.24     0.0001 -7
    without the name       | 26.07       32.91   -6.84      0.0116 -2
""")

TABLE_13 = read("""
            non-members members difference p
    1 word  | 36.26     48.50   -12.24     0.00016
    2 words | 34.24     42.09   -7.85      0.00048
    3 words | 32.78     38.96   -6.18      0.00104
""")

CLOSED_COUNTS = (
    "Its table II has 468 members and 422 non-members. The rates of Llama-3.1-8B fit these; those of the models behind "
    "services fit 444 non-members (all five) and 422 members (four of five), so other documents were asked about there."
)
GROUPS = (
    "Not comparable as printed: MC-PDD is over five groups of 150 documents, three of which overlap (450 of 422), and "
    "the others over single documents."
)
MASKS = (
    "Three masks of a document, drawn by themselves, would give p = .0005 for these counts; .0010 is what documents "
    "give in which masks go together a little (a correlation of .08)."
)
TWICE = "Rates of non-members differ from row to row where words are random: they were drawn anew."
