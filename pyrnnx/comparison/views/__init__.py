"""Views of comparisons: text, JSON values and HTML. Comparisons do not import them."""

from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.result import Views
from pyrnnx.comparison.views.notebook import to_html
from pyrnnx.comparison.views.plain import layer_dict, model_dict
from pyrnnx.comparison.views.text import layer_lines, model_lines

Comparison._views = Views(layer_lines, layer_dict, to_html)
ModelComparison._views = Views(model_lines, model_dict, to_html)
