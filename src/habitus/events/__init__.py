"""Abnormal documents -> events: when, where and why."""
