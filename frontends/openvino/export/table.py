"""The table of translators, filled: each of these modules puts its own into it."""

import pyrnnx.frontends.openvino.export.elementwise
import pyrnnx.frontends.openvino.export.images
import pyrnnx.frontends.openvino.export.indexing
import pyrnnx.frontends.openvino.export.linear
import pyrnnx.frontends.openvino.export.pooling
import pyrnnx.frontends.openvino.export.recurrent
import pyrnnx.frontends.openvino.export.reductions
import pyrnnx.frontends.openvino.export.shapes
import pyrnnx.frontends.openvino.export.slices
import pyrnnx.frontends.openvino.export.spectra  # noqa: F401
from pyrnnx.frontends.openvino.export.translation import TRANSLATORS, translator

__all__ = ["TRANSLATORS", "translator"]
