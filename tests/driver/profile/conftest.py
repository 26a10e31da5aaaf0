"""A profile of the small model, made once, and a browser."""

import pytest
from tests.driver.conftest import write_model
from tests.driver.profile.browser import Page, find_browser

from tilewright.driver import profile, tvmc


@pytest.fixture(scope="session")
def small_profile(tmp_path_factory):
    """The small model, compiled and measured."""
    path = write_model(tmp_path_factory.mktemp("profile") / "small.onnx")
    settings = tvmc.compiler.make_settings("llvm")
    return profile.collect.profile_model(tvmc.load(path), settings, "small.onnx", repeat=3)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium here: the report is not opened")
    page = Page(path)
    yield page
    page.close()


@pytest.fixture
def page(browser):
    """The browser, with no problems and requests of earlier tests."""
    browser.problems.clear()
    browser.requests.clear()
    return browser
