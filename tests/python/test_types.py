"""The package's types, style and documentation."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import edgelog
import edgelog.aio
import pytest

HERE = Path(__file__).parent
PACKAGE = HERE.parent.parent / "bindings" / "python"
DOCS = HERE.parent.parent / "docs"


def run(*command: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, check=False, text=True, cwd=cwd
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_module(tmp_path: Path) -> None:
    run("mypy.stubtest", "edgelog", cwd=tmp_path)


def test_the_package_is_typed_strictly() -> None:
    run("mypy", "--cache-dir", os.devnull, "--strict", "python/edgelog", cwd=PACKAGE)


def test_the_tests_are_typed_strictly(tmp_path: Path) -> None:
    # They use the installed package, so this shows that its types reach those who use it.
    run("mypy", "--strict", "--python-version", "3.10", str(HERE), cwd=tmp_path)


def test_style() -> None:
    run("ruff", "check", "--no-cache", ".", cwd=PACKAGE)
    run("ruff", "format", "--no-cache", "--check", ".", cwd=PACKAGE)


def test_everything_public_is_documented() -> None:
    missing = []
    public = [(name, getattr(edgelog, name)) for name in edgelog.__all__]
    public += [(f"aio.{name}", getattr(edgelog.aio, name)) for name in edgelog.aio.__all__]
    for name, thing in public:
        if isinstance(thing, (int, str)):
            continue
        if not inspect.getdoc(thing):
            missing.append(name)
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for member, value in vars(thing).items():
                if not member.startswith("_") and not inspect.getdoc(value):
                    missing.append(f"{name}.{member}")
    assert missing == []
    found = {name for name in dir(edgelog) if not name.startswith("_")}
    # It is imported here, and only by those who use it.
    assert set(edgelog.__all__) == found - {"aio"}


def samples(file: Path = PACKAGE / "README.md") -> list[str]:
    text = file.read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(samples())))
def test_the_samples_run(
    number: int, script: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    if number != 0:
        done = script(samples()[0])
        assert done.returncode == 0, done.stderr
    done = script(samples()[number])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_there_are_samples() -> None:
    assert len(samples()) >= 4


def test_the_samples_are_typed_strictly(tmp_path: Path) -> None:
    for number, sample in enumerate(samples() + samples(DOCS / "ordered.md")):
        (tmp_path / f"sample{number}.py").write_text(sample)
    run("mypy", "--strict", *sorted(str(file) for file in tmp_path.glob("*.py")), cwd=tmp_path)
