"""A real Chromium for the page: where it is, and how a page is opened at a width."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs Chromium: apt-get install chromium chromium-driver"
)


def visit(browser: Any, page: Path, *, width: int = 1280) -> None:
    """Open a page; what the browser logged before is forgotten."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
