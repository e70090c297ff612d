"""What doctor says of optional parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bookrag_fast.cli import checks
from bookrag_fast.document.ocr.stage import is_installed


@pytest.mark.skipif(not is_installed(), reason="the extra ocr is not installed")
def test_two_opencvs_that_overwrite_each_other_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_ocr() -> list[checks.Finding]:
        return [f for f in checks.examine(tmp_path / "shelf", None) if f.check == "ocr"]

    assert [f.level for f in of_ocr()] == [checks.OK]
    monkeypatch.setattr(checks, "_is_there", lambda distribution: True)
    warning, fine = of_ocr()
    assert (warning.level, fine.level) == (checks.WARNING, checks.OK)
    assert "opencv-python-headless" in warning.remedy
