"""python -m nonmember_verify BUNDLE"""

import sys

from nonmember_verify.cli import main

sys.exit(main())
