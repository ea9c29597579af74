"""nonmember: was this dataset used to train this language model, or was it not?"""

__version__ = "0.1.0"
