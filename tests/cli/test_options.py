"""Messages of Python functions with the options of the command line."""

from __future__ import annotations

from rows import each_row

from pyrnnx.cli.options import OPTIONS, with_options

NAMES = {**OPTIONS, "rate": "--rate", "frame": "--frame", "cast": "--cast", "source_format": "--source-format"}


@each_row(
    ("message", "expected"),
    [
        ("dims has 'q'; expected", "--dim has 'q'; expected"),
        ("expected rate=8000: no", "expected --rate 8000: no"),
        ("(rate='mean' mixes)", "(--rate mean mixes)"),
        ("pass others as inputs=... (no)", "pass others as --input ... (no)"),
        ("(cast=True converts)", "(--cast converts)"),
        ("frame is None; expected frame, too", "--frame is not set; expected --frame, too"),
        ("expected one of a, b, or source_format", "expected one of a, b, or --source-format"),
        ("layers has no 'x'", "--layer has no 'x'"),
        ("item 'rate=3'; the frame cut, its cast", "item 'rate=3'; the frame cut, its cast"),
    ],
)
def test_arguments_become_options(message: str, expected: str) -> None:
    assert with_options(message, NAMES) == expected
