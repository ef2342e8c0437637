"""Pictures of the gallery: `python docs/gallery.py` runs the examples and writes docs/static/gallery/*.webp.

The examples need models, espeak-ng and PyTorch, which a build of the documents does not; so the pictures are committed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "static" / "gallery"
EXAMPLES = ("voice_activity", "denoise", "onnx_and_ir", "pytorch_side_by_side")
WIDTH = 900  # pixels


def main() -> None:
    GALLERY.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or EXAMPLES:
            path = Path(folder, f"{name}.png")
            subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", "--output", path], check=True)
            picture = Image.open(path).convert("RGB")
            picture.thumbnail((WIDTH, WIDTH))
            picture.save(GALLERY / f"{name}.webp", quality=80)


if __name__ == "__main__":
    main()
