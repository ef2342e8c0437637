"""Whole models and single layers beside other runtimes, and which of them the oracle sides with."""

from pyrnnx.testing.models.checked import Judged, LayerCheck, ModelCheck, RuntimeCheck, check_model

__all__ = ["Judged", "LayerCheck", "ModelCheck", "RuntimeCheck", "check_model"]
