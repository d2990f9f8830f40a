"""The magics, one module each; ``lazy`` imports a module at its first use."""

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
    "oh_trust": ("trust", "TrustMagics", _LINE),
    "oh_rewind": ("rewind", "RewindMagics", _LINE),
    "oh_agent": ("agent", "AgentMagics", _LINE_AND_CELL),
}
"""Every magic of ``%load_ext oh_jupyter``: its module, class and kinds."""
