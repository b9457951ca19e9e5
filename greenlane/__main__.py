"""`python -m greenlane` is the `greenlane` command."""

import sys

from greenlane.cli import main

sys.exit(main())
