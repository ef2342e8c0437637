"""Views of comparisons: text, JSON values, HTML and plots. Comparisons do not import them."""

from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.result import Views
from pyrnnx.comparison.views.notebook import layer_html, model_html
from pyrnnx.comparison.views.plain import layer_dict, model_dict
from pyrnnx.comparison.views.plot import plot_layers, plot_models
from pyrnnx.comparison.views.text import layer_lines, model_lines

Comparison._views = Views(layer_lines, layer_dict, layer_html, plot_layers)
ModelComparison._views = Views(model_lines, model_dict, model_html, plot_models)
