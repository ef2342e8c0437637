"""All mutants; each case in `killed_by` must fail the mutant by itself."""

from __future__ import annotations

from equation_mutants import CLIP, GATES, RESET
from function_mutants import FUNCTIONS, PARAMETERS
from input_mutants import INPUTS
from number_mutants import NUMBERS, SIZES
from step_mutants import STEPS

MUTANTS = (*GATES, *RESET, *CLIP, *STEPS, *INPUTS, *FUNCTIONS, *PARAMETERS, *SIZES, *NUMBERS)
