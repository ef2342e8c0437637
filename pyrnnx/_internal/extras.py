"""Words for a package that an extra of pyrnnx installs."""


def needs(what: str, package: str, extra: str) -> str:
    """Return a message that a task needs a package, with the command that installs it.

    The command is right without a pyrnnx on a package index: pip keeps the installed one, and adds the packages of
    its extra.

    Parameters
    ----------
    what : str
        Subject of the sentence: "reading .keras files".
    package : str
    extra : str
        Name in `[project.optional-dependencies]` of pyproject.toml.
    """
    return f'{what} needs the package {package}; `python -m pip install "pyrnnx[{extra}]"` adds it to this pyrnnx'
