"""The version, known without a look at what is installed: that would cost each start a tenth."""

__version__ = "0.5.0"
