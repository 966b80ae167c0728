"""Chromium without a screen, driven through its own driver: one page at a time, from disk."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable
from pathlib import Path

FLAGS = (
    *(
        "--headless",
        "--font-render-hinting=none",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--hide-scrollbars",
    ),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
DESK, PHONE = (1320, 900), (390, 844)
PATIENCE_S = 600
"""For a machine that does much else; nothing here is about speed."""


class Browser:
    """A browser with one page."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        options = Options()
        options.binary_location = shutil.which("chromium")
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.command_executor.client_config.timeout = PATIENCE_S
        self.driver.set_page_load_timeout(PATIENCE_S)
        self.driver.set_script_timeout(PATIENCE_S)

    def run(self, script: str, *words: object) -> object:
        return self.driver.execute_script(script, *words)

    def wait(self, script: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, PATIENCE_S).until(lambda _: self.run(f"return {script}"))

    def wait_for(self, happens: Callable[[], object]) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, PATIENCE_S).until(lambda _: happens())

    def drawn(self) -> None:
        """Until all charts are."""
        self.wait("document.body.dataset.ready === 'yes'")

    def turn(self, size: tuple[int, int], theme: str) -> None:
        """The same page on another screen, drawn again where it has to be."""
        self.screen(size, theme)
        self.wait(f"document.documentElement.dataset.theme === '{theme}' && innerWidth === {size[0]}")
        self.drawn()

    def screen(self, size: tuple[int, int] = DESK, theme: str = "light") -> None:
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width == PHONE[0]}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: Path, size: tuple[int, int] = DESK, theme: str = "light") -> None:
        """The page as a new reader sees it."""
        if self.driver.current_url.startswith("file:"):
            self.run("localStorage.clear()")
        self.screen(size, theme)
        self.driver.get(page.as_uri())
        self.drawn()

    def picture(self, width: int) -> bytes:
        """The whole page as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": self.height(), "scale": 1}
        asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])

    def height(self) -> int:
        """Of the whole page, pixels."""
        return int(self.run("return document.documentElement.scrollHeight"))

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def complaints(self) -> list[str]:
        """What stands in the console since it was last read."""
        return [entry["message"] for entry in self.driver.get_log("browser")]
