"""Which folder may import which: the dependency arrows of the design point one way."""

import pytest

from command_line import loaded_modules
from source_tree import folder_of, imports_of, modules

pytestmark = pytest.mark.fast

#: Single modules below the package that any folder may use.
SHARED = {
    "errors", "escape", "input_files", "json_values", "lazy", "leftovers", "machine", "npy_bytes", "old_names",
    "safetensors_bytes", "settings", "users_code", "__version__",
}  # fmt: skip
#: Folders that any folder may use; they use shared modules only.
BELOW_ALL = {"tables"}
_PLAYING = {"levels", "actions", "rules", "engines", "policies", "records"}
#: folder -> the folders that it may import.
ALLOWED: dict[str, set[str]] = {
    "levels": set(),
    "actions": set(),
    "tables": set(),
    "statistics": set(),
    "records": set(),
    "rules": {"actions"},
    "engines": {"actions", "levels"},
    "training": {"levels", "engines", "records", "statistics"},
    "policies": {"actions", "engines", "records", "rules", "training"},
    "plan": {"engines", "records"},
    "calibration": _PLAYING,
    "play": _PLAYING | {"calibration"},
    "analysis": {"levels", "records", "plan", "statistics", "tables"},
    "representation": _PLAYING | {"play"},
    "audit": {"engines"},
    "report": {
        "levels",
        "engines",
        "records",
        "plan",
        "statistics",
        "tables",
        "analysis",
        "audit",
    },
    "api": _PLAYING
    | {"play", "calibration", "training", "plan", "statistics", "tables", "analysis"}
    | {"representation", "report", "audit"},
    "study": _PLAYING
    | {"play", "calibration", "training", "plan", "analysis", "report", "representation", "api"},
    "integrations": _PLAYING | {"play", "analysis", "study", "api"},
}


def _edges() -> dict[tuple[str, str], list[str]]:
    """Folder pairs with the modules that import across them; `cli` and `__main__` may import everything."""
    edges: dict[tuple[str, str], list[str]] = {}
    for name, path in modules().items():
        folder = folder_of(name)
        for imported in imports_of(path):
            target = folder_of(imported)
            if target not in {folder, "", *SHARED, *BELOW_ALL} and folder not in {"", "cli", "__main__"}:
                edges.setdefault((folder, target), []).append(name)
    return edges


def test_every_folder_has_its_line_in_the_table() -> None:
    folders = {folder_of(name) for name, path in modules().items() if path.name == "__init__.py"}
    assert folders - {"", "cli"} <= set(ALLOWED)
    singles = {folder_of(name) for name, path in modules().items() if path.parent.name == "gapfloor"}
    assert singles - {"", "__main__"} <= SHARED


def test_imports_follow_the_table() -> None:
    wrong = {edge: names for edge, names in _edges().items() if edge[1] not in ALLOWED.get(edge[0], set())}
    assert wrong == {}


def test_shared_modules_import_no_folder() -> None:
    wrong = {
        name: sorted(folder_of(imported) for imported in imports_of(path))
        for name, path in modules().items()
        if folder_of(name) in SHARED
        and {folder_of(imported) for imported in imports_of(path)} - SHARED - {""}
    }
    assert wrong == {}


def test_the_table_has_no_cycle() -> None:
    left = {folder: set(allowed) for folder, allowed in ALLOWED.items()}
    while left:
        free = {folder for folder, allowed in left.items() if not allowed & set(left)}
        assert free, f"these folders may import each other in a circle: {sorted(left)}"
        left = {folder: allowed for folder, allowed in left.items() if folder not in free}


def test_only_the_edge_imports_report_and_nothing_imports_the_command_line() -> None:
    edges = _edges()
    assert {folder for folder, target in edges if target == "cli"} == set()
    assert {folder for folder, target in edges if target == "report"} <= {"api", "study"}


HEAVY = {
    "torch", "procgen", "gym3", "gymnasium", "envpool", "ray", "scipy", "statsmodels", "matplotlib", "pandas",
    "pyarrow", "duckdb", "onnxruntime", "stable_baselines3",
}  # fmt: skip


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = loaded_modules("import gapfloor")
    assert "gapfloor" in loaded
    assert loaded & HEAVY == set()


def test_the_help_of_the_command_line_imports_nothing_heavy() -> None:
    code = "from gapfloor.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    assert loaded_modules(code) & HEAVY == set()


def test_the_report_makes_no_test_and_corrects_no_p_value() -> None:
    """It may ask what a sentence needs, name published scales, and hold estimates; nothing that computes one."""
    allowed = {f"gapfloor.statistics.{name}" for name in ("conventions", "normalised", "sentences")}
    found = {
        imported
        for name, path in modules().items()
        if folder_of(name) == "report"
        for imported in imports_of(path)
        if imported.startswith(("gapfloor.statistics", "scipy"))
    }
    assert found
    assert found <= allowed
