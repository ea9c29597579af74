"""DE-COP: which of four passages is verbatim?"""
