"""`python -m cage2`."""

from cage2.cli import main

raise SystemExit(main())
