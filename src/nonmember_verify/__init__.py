"""Checks a bundle of audits without the models, the documents' text, a GPU, or the program that made it.

It imports nothing of `nonmember`; the tests are computed here a second time, by other algorithms where there are any.
"""

__version__ = "0.2.0"
