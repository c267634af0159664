"""Refusals: what a user is told, in one line, before exit status 1."""


class LabError(Exception):
    """The text names the place and the value, and says what would be right."""
