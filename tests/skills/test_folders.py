"""Skill folders of a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_jupyter.skills import skill_folders

ROOT = Path(__file__).parents[2]


def write(workspace: Path, where: str, text: str) -> Path:
    file = workspace / where / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    return file


def test_folders_are_found_by_name(tmp_path: Path) -> None:
    first = write(
        tmp_path, ".agents/skills/tides", "---\nname: tides\ndescription: Find tides.\n---\nDo."
    )
    write(tmp_path, ".claude/skills/tides", "---\nname: tides\ndescription: Other.\n---\n")
    write(
        tmp_path,
        ".claude/skills/maps",
        '---\nname: "maps"\nlicense: MIT\ndescription: >-\n  Draw\n  maps: of x.\n---\n',
    )
    maps, tides = skill_folders(str(tmp_path))
    assert (maps.name, maps.description) == ("maps", "Draw maps: of x.")
    assert tides == ("tides", "Find tides.", first)


@pytest.mark.parametrize(
    "text",
    [
        "no header",
        "---\nname: other\ndescription: x\n---\n",
        "---\nname: bad\n---\n",
        f"---\nname: bad\ndescription: {'x' * 1025}\n---\n",
        "---\nname: bad\ndescription: x\n",
    ],
    ids=["no header", "another name", "no description", "too long", "no end"],
)
def test_malformed_skills_are_skipped(tmp_path: Path, text: str) -> None:
    write(tmp_path, ".agents/skills/bad", text)
    (tmp_path / ".claude/skills/binary").mkdir(parents=True)
    (tmp_path / ".claude/skills/binary/SKILL.md").write_bytes(b"\xff\xfe")
    assert skill_folders(str(tmp_path)) == []


def test_our_own_skill_is_well_formed() -> None:
    (own,) = skill_folders(str(ROOT / "plugins" / "oh-jupyter"))
    assert own.name == "live-notebook"


def test_no_folders(tmp_path: Path) -> None:
    assert skill_folders(str(tmp_path)) == []
