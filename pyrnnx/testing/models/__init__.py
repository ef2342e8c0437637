"""Comparison of models and layers with other runtimes, judged by the oracle."""

from pyrnnx.testing.models.checked import Judged, LayerCheck, ModelCheck, RuntimeCheck, check_model

__all__ = ["Judged", "LayerCheck", "ModelCheck", "RuntimeCheck", "check_model"]
