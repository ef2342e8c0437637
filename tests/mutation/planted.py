"""The table of planted faults."""

from __future__ import annotations

from mutation import core, front_ends, kernels, models, scoring

FAULTS = (*kernels.FAULTS, *core.FAULTS, *front_ends.FAULTS, *models.FAULTS, *scoring.FAULTS)
