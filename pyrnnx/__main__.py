"""Entry point of ``python -m pyrnnx``, the same as the command `pyrnnx`."""

import sys

from pyrnnx.cli import main

sys.exit(main())
