"""`python -m joulepath`."""

import sys

from joulepath.cli import main

sys.exit(main())
