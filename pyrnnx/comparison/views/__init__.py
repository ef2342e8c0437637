"""Views of comparisons: text and JSON values. Comparisons do not import them."""

from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.result import Views
from pyrnnx.comparison.views.plain import layer_dict, model_dict
from pyrnnx.comparison.views.text import layer_lines, model_lines

Comparison._views = Views(layer_lines, layer_dict)
ModelComparison._views = Views(model_lines, model_dict)
