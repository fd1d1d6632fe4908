"""An index of what a repository defines: modules, classes, functions, imports and replaced attributes.

Names are matched as Python would import them from the importing file. A repository's root is rarely known, so the end
of the module path decides (`from pkg.model import Net` finds `src/pkg/model.py`), and the folder nearest to the
importer wins: two sub-projects with a `model.py` each stay apart.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from gapfloor.audit.interpreter.facts import words
from gapfloor.audit.reading.parsing import child_nodes, parse_source
from gapfloor.audit.reading.sources import SourceFile, Sources, Unread, may_play

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.values import Frame

#: Characters of code that are parsed; a syntax tree takes about forty times as many bytes.
MOST_CODE = 5_000_000
#: Libraries whose names repositories reuse for folders of their own.
LIBRARIES = words("libraries")

_VENDORED = re.compile(r"(^|/)(third_?party|vendor|site-packages|node_modules|external|submodules)/")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


@dataclass(eq=False)
class FunctionInfo:
    """A function, method or lambda of the repository."""

    node: FunctionNode | ast.Lambda
    module: ModuleInfo
    owner: ClassInfo | None = None
    outer: FunctionInfo | None = None
    calls: list[ast.Call] = field(default_factory=list)
    """Every call in its body, those of functions inside it included."""

    @property
    def name(self) -> str:
        """Its name; lambdas have none of their own."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def named(self) -> list[ast.arg]:
        """Every parameter but those of `*args` and `**kwargs`."""
        return [*self.node.args.posonlyargs, *self.node.args.args, *self.node.args.kwonlyargs]

    def has_decorator(self, *names: str) -> bool:
        """Whether a decorator's last name is one of `names`."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        return any(last_name(decorator) in names for decorator in decorators)


@dataclass(eq=False)
class ClassInfo:
    """A class of the repository with the methods of its own body."""

    node: ast.ClassDef
    module: ModuleInfo
    outer: FunctionInfo | None = None
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)
    """Its bases and kinds, found by `classes`."""

    @property
    def name(self) -> str:
        """The class's name."""
        return self.node.name


@dataclass(eq=False)
class ModuleInfo:
    """A parsed file."""

    path: str
    tree: ast.Module
    frame: Frame = field(init=False)
    """The frame of its own body, given by the evaluator."""
    imports: dict[str, str] = field(default_factory=dict)
    nodes: list[ast.AST] = field(default_factory=list)
    """Every node, in the order of the text."""
    calls: list[tuple[ast.Call, FunctionInfo | None]] = field(default_factory=list)
    """Every call, with the function whose body holds it."""
    functions: dict[ast.AST, FunctionInfo] = field(default_factory=dict)
    classes: dict[ast.AST, ClassInfo] = field(default_factory=dict)
    changed_globals: set[str] = field(default_factory=set)
    known: dict[tuple[object, ...], Any] = field(default_factory=dict)
    """What `reaching_definitions` found about its nodes and names."""

    @property
    def dotted(self) -> str:
        """The path as a module name from the repository's root."""
        return (
            self.path.removesuffix(".py").removesuffix(".ipynb").removesuffix("/__init__").replace("/", ".")
        )

    @property
    def folder(self) -> str:
        """The folder of the file, from the repository's root."""
        return self.path.rpartition("/")[0]

    @property
    def is_script(self) -> bool:
        """Whether it has an `if __name__ == "__main__"` block."""
        if self.path.endswith(".ipynb"):
            return True
        return any(isinstance(node, ast.If) and "__name__" in names_in(node.test) for node in self.tree.body)

    def scope_of(self, node: ast.AST) -> Scope:
        """The function, class or module whose body holds `node`."""
        parent = parent_of(node)
        while parent is not None and not isinstance(parent, Scope):
            parent = parent_of(parent)
        return parent or self.tree


@dataclass
class Index:
    """Everything the repository defines, by name."""

    modules: dict[str, ModuleInfo] = field(default_factory=dict)
    by_tail: dict[str, list[ModuleInfo]] = field(default_factory=lambda: defaultdict(list))
    functions_by_name: dict[str, list[FunctionInfo]] = field(default_factory=lambda: defaultdict(list))
    #: dotted attribute that some module assigns to (`lib.learn = learn`) -> where
    replaced: dict[str, list[tuple[ModuleInfo, ast.Assign]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    #: attribute that code outside the object's own class assigns (`agent.greedy = True`) -> where, and what
    set_from_outside: dict[str, list[tuple[ModuleInfo, ast.expr]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    unread: list[Unread] = field(default_factory=list)
    packages: set[str] = field(default_factory=set)
    """Dotted names of folders with an `__init__.py`."""
    names: set[str] = field(default_factory=set)
    """Dotted names of all modules."""
    settings: list[SourceFile] = field(default_factory=list)
    """Configuration files of the repository, as text."""
    _reach: dict[str, frozenset[str]] = field(default_factory=dict)
    _found: dict[tuple[str, str | None], ModuleInfo | None] = field(default_factory=dict)

    def find_module(self, dotted: str, importer: ModuleInfo | None = None) -> ModuleInfo | None:
        """The module that `dotted` means in the file `importer`, or None (not in the repository, or several)."""
        key = (dotted, importer.folder if importer is not None else None)
        if key in self._found:
            return self._found[key]
        tail = dotted.rsplit(".", 1)[-1]
        fitting: dict[tuple[int, int], list[ModuleInfo]] = defaultdict(list)
        for module in self.by_tail.get(tail, ()):
            if module.dotted != dotted and not module.dotted.endswith("." + dotted):
                continue
            root = module.dotted[: -len(dotted)].rstrip(".")
            rank = self._rank_root(root, dotted.split(".", 1)[0], importer)
            if rank is not None:
                fitting[rank].append(module)
        best = fitting[min(fitting)] if fitting else []
        self._found[key] = best[0] if len(best) == 1 else None
        return self._found[key]

    def _rank_root(self, root: str, top: str, importer: ModuleInfo | None) -> tuple[int, int] | None:
        """How likely `root` is on the import path of a file; smaller is likelier, None is not at all."""
        parts = root.split(".") if root else []
        is_package = bool(root) and root in self.packages
        is_around = importer is not None and (not root or f"{importer.dotted}.".startswith(root + "."))
        if top in LIBRARIES:
            # A folder inside a package is not an import root: `rlkit/torch` is not the library `torch`.
            home = f"{root}.{top}" if root else top
            is_shipped = home in self.packages or (not root and home in self.names)
            return (0, -len(parts)) if is_shipped and not is_package and (is_around or not root) else None
        if is_around:
            return 0, -len(parts)
        if not root or not is_package:
            return 1, len(parts)
        return 2, len(parts)

    def reach(self, module: ModuleInfo) -> frozenset[str]:
        """The paths of the modules that a module can load: itself, its imports, theirs, and so on."""
        if module.path not in self._reach:
            found, waiting = {module.path}, [module]
            while waiting:
                importer = waiting.pop()
                dotted = set(importer.imports.values())
                for name in sorted(dotted | {one.rpartition(".")[0] for one in dotted} - {""}):
                    target = self.find_module(name, importer)
                    if target is not None and target.path not in found:
                        found.add(target.path)
                        waiting.append(target)
            self._reach[module.path] = frozenset(found)
        return self._reach[module.path]

    def outside_assignments(
        self, name: str, script: ModuleInfo, but: object = None
    ) -> list[tuple[ModuleInfo, ast.expr]]:
        """Where code that a script can load assigns the attribute `name` from outside an object's class.

        `but` is the line (with `file` and `line`) that states the setting itself.
        """
        reach = self.reach(script)
        own = (getattr(but, "file", None), getattr(but, "line", None))
        return [
            (module, value)
            for module, value in self.set_from_outside.get(name, ())
            if module.path in reach and (module.path, value.lineno) != own
        ]


def parent_of(node: ast.AST) -> ast.AST | None:
    """The node around a node; none around a module or a node that was made here."""
    return node.__dict__.get("_parent")


def place_of(node: ast.AST) -> int:
    """A node's place in the order of the text; a node that was made here comes last."""
    place: int = node.__dict__.get("_place", 10**9)
    return place


def last_name(node: ast.AST) -> str:
    """The last name of a dotted expression or of the thing called: `a.b.c(...)` gives c."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by position and by keyword."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def dotted_name(node: ast.AST) -> str:
    """`a.b.c` for a plain dotted expression, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def names_in(node: ast.AST) -> set[str]:
    """Every plain name and attribute name inside `node`."""
    named = (one for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute))
    return {one.id if isinstance(one, ast.Name) else one.attr for one in named}


Node = TypeVar("Node", bound=ast.AST)
Said = TypeVar("Said")


def kept_on_node(function: Callable[[Node], Said]) -> Callable[[Node], Said]:
    """Remember what a function says of a node on the node itself: it lives exactly as long as the tree."""
    name = f"_{function.__name__}"

    @wraps(function)
    def remembered(node: Node) -> Said:
        kept = node.__dict__
        if name not in kept:
            kept[name] = function(node)
        said: Said = kept[name]
        return said

    return remembered


@kept_on_node
def own_nodes(scope: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a scope in the order of the text, without the bodies of functions and classes inside it."""
    found: list[ast.AST] = []
    stack = child_nodes(scope)[::-1]
    while stack:
        found.append(stack.pop())
        if not isinstance(found[-1], ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            stack.extend(reversed(child_nodes(found[-1])))
    return tuple(found)


@kept_on_node
def plain_names_in(node: ast.AST) -> frozenset[str]:
    """Every plain name inside `node`, without the names of attributes."""
    return frozenset(item.id for item in ast.walk(node) if isinstance(item, ast.Name))


def build_index(sources: Sources) -> Index:
    """Parse every source and enter what it defines; in a very large repository only what may matter.

    Files that mention neither an environment nor a policy nor anything that plays are parsed last, and not at all once
    `MOST_CODE` characters are used up; they are then listed as not read.
    """
    total = 0
    index = Index(unread=list(sources.unread), settings=list(sources.settings))
    for source in sorted(sources.files, key=_importance):
        total += len(source.text)
        large = "not parsed: the repository is larger than the budget of one scan"
        tree = parse_source(source.text) if total <= MOST_CODE else large
        if isinstance(tree, str):
            index.unread.append(Unread(source.path, tree, may_play(source.text.encode(errors="replace"))))
            continue
        module = ModuleInfo(path=source.path, tree=tree)
        _enter_nodes(module)
        index.modules[source.path] = module
        index.by_tail[module.dotted.rsplit(".", 1)[-1]].append(module)
        index.names.add(module.dotted)
        if source.path.endswith("__init__.py"):
            index.packages.add(module.dotted)
    for module in index.modules.values():
        _enter_imports(module)
        for function in module.functions.values():
            index.functions_by_name[function.name].append(function)
        _enter_replacements(index, module)
    return index


def _importance(source: SourceFile) -> tuple[bool, bool]:
    """Whether a file is a unit test or the like, and whether it mentions nothing that plays."""
    words = (".step(", "policy", "env", "agent")
    return is_unit_test(source.path), not any(word in source.text for word in words)


def is_unit_test(path: str) -> bool:
    """Whether a file belongs to unit tests, documentation or code that was copied from elsewhere."""
    parts = path.lower().split("/")
    is_test = bool({"tests", "docs", "doc", "unittests", "unit_tests"} & set(parts[:-1]))
    is_test = is_test or parts[-1].startswith("test_")
    is_test = is_test or (parts[-1].endswith("_test.py") and not re.search(r"eval|run|play|train", parts[-1]))
    is_module = re.match(r"test_(env|agent|policy|model|check|eval)", parts[-1]) is not None
    return (is_test and not is_module) or bool(_VENDORED.search(path))


def _enter_nodes(module: ModuleInfo) -> None:
    stack: list[tuple[ast.AST, FunctionInfo | None, ClassInfo | None]] = [(module.tree, None, None)]
    while stack:
        node, outer, owner = stack.pop()
        node.__dict__["_place"] = len(module.nodes)
        module.nodes.append(node)
        inner_outer, inner_owner = outer, owner
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            is_method = owner is not None and parent_of(node) is owner.node
            function = FunctionInfo(node=node, module=module, owner=owner if is_method else None, outer=outer)
            module.functions[node] = function
            if is_method and owner is not None:
                owner.methods.setdefault(function.name, function)
            inner_outer, inner_owner = function, None
        elif isinstance(node, ast.ClassDef):
            inner_owner = ClassInfo(node=node, module=module, outer=outer)
            module.classes[node] = inner_owner
        elif isinstance(node, ast.Call):
            module.calls.append((node, outer))
            around = outer
            while around is not None:
                around.calls.append(node)
                around = around.outer
        children = child_nodes(node)
        for child in children:
            child.__dict__["_parent"] = node
        stack.extend((child, inner_outer, inner_owner) for child in reversed(children))


def _enter_imports(module: ModuleInfo) -> None:
    package = (
        module.dotted.split(".") if module.path.endswith("__init__.py") else module.dotted.split(".")[:-1]
    )
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                module.imports.setdefault(name, alias.name if alias.asname else alias.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                if alias.name == "*":
                    module.imports.setdefault("*" + source, source)
                else:
                    module.imports[alias.asname or alias.name] = (
                        f"{source}.{alias.name}" if source else alias.name
                    )


def _enter_replacements(index: Index, module: ModuleInfo) -> None:
    """Attributes and globals that are changed from elsewhere: what a class or a module says is then not all."""
    for node in module.nodes:
        if isinstance(node, ast.Global):
            module.changed_globals.update(node.names)
        elif isinstance(node, ast.Call) and last_name(node.func) == "setattr" and len(node.args) == 3:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                index.set_from_outside[name.value].append((module, node.args[2]))
        elif isinstance(node, ast.Assign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if not isinstance(target, ast.Attribute):
                    continue
                head, _, rest = dotted_name(target).partition(".")
                if rest and head in module.imports and isinstance(node, ast.Assign):
                    index.replaced[f"{module.imports[head]}.{rest}"].append((module, node))
                if head not in ("self", "cls") or rest != target.attr:
                    index.set_from_outside[target.attr].append((module, node.value))
