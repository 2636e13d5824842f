"""Fixtures that several rooms share."""

from reference.browser import browser, opened

__all__ = ["browser", "opened"]
