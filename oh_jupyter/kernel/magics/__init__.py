"""The magics, one module each; ``lazy`` imports one when it is first used."""

__all__ = ["MAGICS"]

_LINE = ("line",)
_LINE_AND_CELL = ("line", "cell")

MAGICS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "oh_run": ("run", "RunMagics", _LINE_AND_CELL),
    "oh_edit": ("edit", "EditMagics", _LINE_AND_CELL),
    "oh_browse": ("browse", "BrowseMagics", _LINE_AND_CELL),
    "oh_store": ("store", "StoreMagics", _LINE_AND_CELL),
    "oh_skills": ("skills", "SkillsMagics", _LINE),
    "oh_log": ("log", "LogMagics", _LINE),
    "oh_status": ("log", "LogMagics", _LINE),
    "oh_doctor": ("log", "LogMagics", _LINE),
    "oh_replay": ("replay", "ReplayMagics", _LINE),
    "oh_confirm": ("log", "ConfirmMagics", _LINE),
    "oh_rewind": ("rewind", "RewindMagics", _LINE),
    "oh_agent": ("agent", "AgentMagics", _LINE_AND_CELL),
}
"""Every magic that ``%load_ext oh_jupyter`` registers: its module, its class, and its kinds."""
