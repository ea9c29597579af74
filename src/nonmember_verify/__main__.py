"""python -m nonmember_verify BUNDLE"""

from nonmember_verify.cli import run

run()
