"""The numbers printed in the PRISM paper, table by table, with the digits it prints.

Every table is text laid out as in the paper: a line of columns, then a line per row. Cells hold one or more numbers
separated by a slash. Nothing here is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ALPHA = 0.05
SOURCE = "PRISM, as printed in the paper"


@dataclass(frozen=True)
class PublishedTable:
    """rows: row name -> column name -> the numbers of the cell, as printed."""

    columns: tuple[str, ...]
    rows: dict[str, dict[str, tuple[str, ...]]]

    def get(self, row: str, column: str) -> tuple[str, ...]:
        return self.rows.get(row, {}).get(column, ())

    def cells(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        for row, cells in self.rows.items():
            for column, texts in cells.items():
                yield row, column, texts


def number(text: str) -> float:
    """The value of a printed number: 1.0e-4, .354, 154,387."""
    return float(text.replace(",", ""))


def read(text: str) -> PublishedTable:
    """A table from its lines. A row's name ends at the bar; a dot alone is a cell the paper does not have."""
    head, *lines = [line.strip() for line in text.strip().splitlines()]
    columns = tuple(head.split())
    rows = {}
    for line in lines:
        name, _, cells = line.partition("|")
        texts = [tuple(cell.split("/")) if cell != "." else () for cell in cells.split()]
        rows[name.strip()] = dict(zip(columns, texts, strict=True))
    return PublishedTable(columns, rows)


# rho of untouched 410m / 410m-CPT with the reference in the column.
TABLE_1 = read("""
                 1b         2.8b       6.9b
    ArXiv     |  0.82/0.45  0.75/0.42  0.72/0.37
    HN        |  0.71/0.40  0.74/0.40  0.68/0.41
    CC        |  0.80/0.50  0.77/0.46  0.70/0.42
    Wikipedia |  0.84/0.25  0.80/0.25  0.77/0.21
    PubMed    |  0.84/0.33  0.79/0.29  0.77/0.30
""")

# p. Reference: 410m for larger targets, 1b for 410m and CPT, OLMo-1b for Reddit. The members are the CPT row.
TABLE_2 = read("""
               PubMed  HN      ArXiv   CC      Ubuntu  Freelaw Enron   Reddit
    410m-CPT | 1.000   0.354   0.113   0.302   0.162   0.982   0.128   0.817
    410m     | 1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  2.0e-4  1.0e-4
    1b       | 1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4
    2.8b     | 1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4
    6.9b     | 1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4  2.0e-4  1.0e-4
""")

# p of 410m-CPT on the held-out halves, which it never read.
TABLE_3 = read("""
               PubMed  HN    ArXiv   CC    Reddit  Ubuntu  Freelaw Enron
    410m-CPT | 0.84    0.01  1.0e-4  0.02  0.03    1.0e-4  1.0e-4  1.0e-4
""")

# p of untouched 410m / 410m-CPT by two membership tests.
TABLE_4 = read("""
             PubMed        HN           ArXiv        CC           Reddit
    LLM-DI | 0.604/0.775   0.395/0.022  0.781/0.083  0.642/0.045  0.437/0.064
    PaCoST | 3.0e-13/0.045 0.683/0.999  0.158/0.122  0.002/0.009  0.001/4.0e-9
""")

# p of untouched 410m / 410m-CPT with the reference in the row.
TABLE_5 = read("""
           PubMed        HN            ArXiv         CC
    70m  | 0.080/0.858   1.0e-4/0.002  2.0e-4/0.030  0.043/0.030
    160m | 1.0e-4/0.461  2.0e-4/0.017  1.0e-4/0.012  1.0e-4/4.0e-4
    1b   | 1.0e-4/1.000  1.0e-4/0.354  1.0e-4/0.113  1.0e-4/0.302
""")

# Documents and tokens of each set (of one half, where there are two).
TABLE_6 = read("""
              documents tokens
    PubMed  | 500       154,387
    HN      | 500       160,637
    ArXiv   | 500       162,267
    CC      | 500       129,029
    Reddit  | 650       125,789
    Ubuntu  | 688       294,341
    Freelaw | 990       278,770
    Enron   | 359       118,004
""")

# rho of untouched 410m / 410m-CPT / their difference, reference 1b.
TABLE_7 = read("""
               PubMed          HN              ArXiv           CC              Wikipedia
    Loss     | 0.99/0.92/0.07  0.98/0.83/0.15  0.99/0.84/0.15  0.98/0.72/0.26  0.98/0.55/0.43
    zlib     | 0.99/0.93/0.06  0.99/0.93/0.06  0.99/0.89/0.10  0.98/0.82/0.16  0.98/0.57/0.41
    DC-PDD   | 0.98/0.92/0.06  0.95/0.62/0.33  0.97/0.85/0.12  0.90/0.50/0.40  0.98/0.47/0.51
    Min-K%   | 0.96/0.79/0.17  0.90/0.64/0.26  0.93/0.59/0.34  0.94/0.75/0.19  0.94/0.42/0.52
    Min-K%++ | 0.84/0.33/0.51  0.75/0.41/0.34  0.82/0.45/0.37  0.79/0.51/0.28  0.84/0.25/0.59
""")

# rho_RT / rho_DT / lower / upper end of the 95% interval of Delta.
TABLE_8 = read("""
               PubMed                     HN                         ArXiv                      CC
    410m-CPT | 0.328/0.590/-0.371/-0.151  0.404/0.384/-0.080/0.121   0.447/0.393/-0.034/0.142   0.512/0.488/-0.068/0.116
    410m     | 0.836/0.420/0.322/0.511    0.752/0.467/0.207/0.366    0.819/0.506/0.232/0.394    0.791/0.446/0.261/0.434
    1b       | 0.844/0.513/0.249/0.416    0.722/0.512/0.127/0.291    0.812/0.539/0.200/0.348    0.840/0.482/0.282/0.439
    2.8b     | 0.783/0.498/0.203/0.369    0.661/0.307/0.262/0.446    0.760/0.443/0.239/0.396    0.807/0.361/0.356/0.536
    6.9b     | 0.757/0.385/0.283/0.463    0.651/0.321/0.240/0.420    0.733/0.452/0.204/0.358    0.769/0.302/0.371/0.563
""")

TABLE_9 = read("""
               Ubuntu                     Freelaw                    Enron                      Reddit
    410m-CPT | 0.312/0.259/-0.054/0.160   0.411/0.490/-0.151/-0.006  0.432/0.355/-0.055/0.208   0.449/0.488/-0.123/0.045
    410m     | 0.784/0.266/0.429/0.605    0.826/0.591/0.184/0.289    0.703/0.440/0.137/0.392    0.672/0.080/0.503/0.678
    1b       | 0.767/0.395/0.302/0.441    0.825/0.498/0.277/0.377    0.646/0.287/0.226/0.496    0.721/0.070/0.560/0.736
    2.8b     | 0.718/0.308/0.331/0.489    0.753/0.398/0.298/0.413    0.530/0.188/0.202/0.479    0.763/0.052/0.626/0.793
    6.9b     | 0.675/0.298/0.295/0.459    0.708/0.359/0.289/0.410    0.443/0.178/0.126/0.405    0.774/0.038/0.650/0.817
""")

# p of the paired t-test of Min-K%++ (H1: lower under the target than under the distilled reference).
TABLE_10 = read("""
               PubMed   HN       ArXiv    CC       Ubuntu   Freelaw  Enron    Reddit
    410m-CPT | 2.6e-5   1.7e-24  3.7e-45  8.0e-8   1.2e-16  9.9e-34  3.6e-8   2.5e-8
    410m     | 0.18     9.6e-22  9.5e-11  2.8e-21  0.54     0.03     5.7e-17  2.5e-6
    1b       | 1.9e-11  2.2e-3   2.6e-47  7.0e-10  1.2e-18  3.7e-35  0.84     3.3e-6
    2.8b     | 7.8e-15  0.63     2.3e-8   0.06     0.04     1.6e-31  0.36     2.4e-6
    6.9b     | 4.8e-5   1.0      2.8e-38  0.01     2.7e-4   0.03     0.92     2.0e-6
""")

# p, target OLMo-1b, Pythia references in the columns.
TABLE_11 = read("""
             70m     160m    410m    1b
    Reddit | 1.0e-4  1.0e-4  1.0e-4  1.0e-4
""")

TABLE_12 = read("""
               PubMed  HN      ArXiv   CC      Reddit
    Spearman | 1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4
    Kendall  | 1.0e-4  1.0e-4  1.0e-4  1.0e-4  1.0e-4
""")
