"""What a name stands for: assignments that reach it, parameters, closures, modules and imports."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.binding import (
    additions_to_sequence,
    changes_of_mapping,
    is_filled_elsewhere,
    values_of_unknown_keys,
)
from gapfloor.audit.interpreter.options import is_settings_class
from gapfloor.audit.interpreter.reaching_definitions import Assignment, branch_path, conditions, reaching
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Binding,
    Callable,
    Class,
    Computed,
    Environment,
    External,
    ExternalObject,
    Frame,
    Guard,
    Instance,
    KnownValue,
    Mapping,
    Mark,
    Module,
    Namespace,
    Noise,
    Sequence,
    Unknown,
    recorded,
)
from gapfloor.audit.reading.index import ClassInfo, ModuleInfo, last_name, own_nodes

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator


class NameModel:
    """Resolves names for one evaluator, innermost scope first."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._active: set[tuple[str, str]] = set()

    def at(self, name: str, use: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
        """The alternatives of a plain name at `use`."""
        scope = frame.scope
        found: list[Alternative] = []
        older = True
        alive: list[Assignment] = []
        definitions = self.evaluator.definitions(frame.module, scope).get(name, [])
        if definitions:
            alive, older = reaching(frame.module, scope, definitions, use)
            alive, older = self._after_loops(alive, older, frame, use)
            for definition in alive:
                found = [item.under(*self._spared_by(definition, frame, use)) for item in found]
                found.extend(self.definition(definition, frame, use))
        if older:
            spared = [guard for definition in alive for guard in self._spared_by(definition, frame, use)]
            outer = self._outer_name(name, use, frame, has_own=bool(found))
            found.extend(item.under(*spared) for item in outer)
        if any(isinstance(item.value, Mapping | Sequence) for item in found):
            return tuple(self.as_changed(item, name, frame) for item in found)
        if any(isinstance(item.value, Action | Computed) for item in found):
            found.extend(self._stored_in(name, use, frame))
        return tuple(found)

    def _stored_in(self, name: str, use: ast.AST, frame: Frame) -> list[Alternative]:
        """What earlier statements put into single places of an array: `actions[i] = env.action_space.sample()`."""
        found: list[Alternative] = []
        order = frame.module.order
        around = {id(node) for node, _ in branch_path(frame.module, use, frame.scope)}
        for statement, target in _item_stores(frame.scope).get(name, ()):
            inside = {id(node) for node, _ in branch_path(frame.module, statement, frame.scope)}
            if order[statement] > order.get(use, 10**9) and not inside & around:
                continue
            if any(node is use for node in own_nodes(statement)):
                continue  # `actions[i] = f(actions)` reads what was there before
            guards = [
                Guard(test, holds, frame)
                for test, holds in conditions(frame.module, statement, frame.scope, use)
            ]
            if self.evaluator.is_random_condition(target.slice, frame):
                guards.append(Guard(target.slice, True, frame))
            expression: ast.AST = statement.value
            if isinstance(statement, ast.AugAssign):
                expression = _operation(statement)
            found.extend(item.under(*guards) for item in self.evaluator.evaluate(expression, frame))
        return found

    def as_changed(self, item: Alternative, name: str, frame: Frame) -> Alternative:
        """A mapping or list with what the scope assigns or appends later; open where that cannot be read."""
        if isinstance(item.value, Sequence):
            added = additions_to_sequence(name, frame.scope)
            if added is None:
                return replace(item, value=Unknown(f"{name}, which is changed later"))
            if not added:
                return item
            elements = (*item.value.elements, *added)
            return replace(item, value=Sequence(elements, frame, is_unordered=True))
        if not isinstance(item.value, Mapping):
            return item
        keys, is_open = changes_of_mapping(name, frame.scope)
        is_filled = is_filled_elsewhere(name, frame.scope, is_empty=not item.value.everything)
        is_open = is_open or is_filled
        if not keys and not is_open:
            return item
        kept = {key: binding for key, binding in item.value.items.items() if key not in keys}
        kept |= {key: Binding(value, frame) for key, value in keys.items() if value is not None}
        unread = any(value is None for value in keys.values())
        others = None
        if not is_filled and not item.value.is_open:
            values = values_of_unknown_keys(
                name, frame.scope, known={key for key, one in keys.items() if one}
            )
            others = tuple(Binding(value, frame) for value in values) if values else None
        return replace(item, value=Mapping(kept, item.value.is_open or is_open or unread, others))

    def _after_loops(
        self, alive: list[Assignment], older: bool, frame: Frame, use: ast.AST
    ) -> tuple[list[Assignment], bool]:
        """Without what a loop replaces that runs at least once: `for _ in range(1): action = ...`."""
        around = {id(node) for node, _ in branch_path(frame.module, use, frame.scope)}
        for position, definition in enumerate(alive):
            path = branch_path(frame.module, definition.statement, frame.scope)
            inside = [(node, branch) for node, branch in path if id(node) not in around]
            if definition.kind != "assign" or len(inside) != 1 or inside[0][1] != "body":
                continue
            loop = inside[0][0]
            if (older or position) and isinstance(loop, ast.For) and self._runs(loop, frame):
                alive, older = alive[position:], False
                break
        return alive, older

    def _runs(self, loop: ast.For, frame: Frame) -> bool:
        """Whether a loop over `range(number)` surely runs: the number is written at the call or in place."""
        call = loop.iter
        is_range = isinstance(call, ast.Call) and last_name(call.func) == "range" and len(call.args) == 1
        if not is_range or any(isinstance(node, ast.Break | ast.Continue) for node in own_nodes(loop)):
            return False
        assert isinstance(call, ast.Call)
        found = self.evaluator.evaluate(call.args[0], frame)
        return bool(found) and all(
            isinstance(item.value, KnownValue) and isinstance(item.value.value, int) and item.value.value > 0
            for item in found
        )

    def _spared_by(self, definition: Assignment, frame: Frame, use: ast.AST) -> list[Guard]:
        """The condition under which an older value survives a definition that is made under one condition."""
        tests = conditions(frame.module, definition.statement, frame.scope, use)
        if len(tests) != 1 or frame.module.order[definition.statement] > frame.module.order.get(use, 10**9):
            return []
        return [Guard(tests[0][0], not tests[0][1], frame)]

    def _outer_name(self, name: str, use: ast.AST, frame: Frame, *, has_own: bool) -> tuple[Alternative, ...]:
        if name in frame.bindings:
            found = self.evaluator.evaluate_binding(frame.bindings[name], name)
            if any(isinstance(item.value, Unknown | ExternalObject) for item in found):
                return self._as_annotated(found, name, frame)
            return found
        if frame.function is not None:
            if name in ("self", "cls") and frame.receiver is not None:
                return (frame.receiver,)
            node = frame.function.node
            if name in {arg.arg for arg in _parameters(node)}:
                return self._as_annotated((Alternative(Unknown(name)),), name, frame)
            if has_own:
                return ()  # a local name has no value from outside the function
            if frame.parent is not None and frame.parent.function is not None:
                outer = frame.parent
                return self.at(name, _END, outer)
            return self.global_name(frame.module, name)
        if has_own:
            return ()
        return self.imported(frame.module, name)

    def _as_annotated(
        self, found: tuple[Alternative, ...], name: str, frame: Frame
    ) -> tuple[Alternative, ...]:
        """A value that cannot be read, annotated as a class of settings, has the settings of that class."""
        assert frame.function is not None
        annotation = next(
            (arg.annotation for arg in _parameters(frame.function.node) if arg.arg == name), None
        )
        if not isinstance(annotation, ast.Name | ast.Attribute):
            return found
        info = self.evaluator.class_of(annotation, frame.module)
        if not isinstance(info, ClassInfo) or not is_settings_class(info.node):
            return found
        return tuple(
            replace(item, value=Namespace(fields=info))
            if isinstance(item.value, Unknown | ExternalObject)
            else item
            for item in found
        )

    def global_name(self, module: ModuleInfo, name: str) -> tuple[Alternative, ...]:
        """A name of a module's top level, as other code sees it."""
        key = (module.path, name)
        if key in self._active:
            return (Alternative(Unknown(f"{name}, which modules import from each other")),)
        self._active.add(key)
        try:
            return self._global_name(module, name)
        finally:
            self._active.discard(key)

    def _global_name(self, module: ModuleInfo, name: str) -> tuple[Alternative, ...]:
        frame = self.evaluator.module_frame(module)
        definitions = self.evaluator.definitions(module, module.tree).get(name, [])
        if any(definition.kind != "import" for definition in definitions):
            found = self.at(name, _END, frame)
            if name in module.changed_globals:
                found = (*found, Alternative(Unknown(f"{name}, changed by `global`")))
            # A constant at the top of a file is a setting of that file.
            return tuple(
                item.from_origin("option")
                if item.origin == "literal" and isinstance(item.value, KnownValue)
                else item
                for item in found
            )
        return self.imported(module, name)

    def imported(self, module: ModuleInfo, name: str) -> tuple[Alternative, ...]:
        """A name that a module imports; names that nobody defines are unknown."""
        if name in module.imports:
            return self.dotted(module.imports[name], module)
        for key, source in module.imports.items():
            if key.startswith("*"):
                target = self.evaluator.index.find_module(source, module)
                if (
                    target is not None
                    and target is not module
                    and name in self.evaluator.definitions(target, target.tree)
                ):
                    return self.global_name(target, name)
        return (Alternative(External(name) if name in _BUILTINS else Unknown(name)),)

    def dotted(self, dotted: str, importer: ModuleInfo) -> tuple[Alternative, ...]:
        """What an import path means in the file `importer`: something of the repository, or external."""
        if dotted in self.evaluator.index.replaced:
            return self._replaced(dotted)
        module = self.evaluator.index.find_module(dotted, importer)
        if module is not None:
            return (Alternative(Module(module)),)
        head, _, tail = dotted.rpartition(".")
        if head:
            parent = self.evaluator.index.find_module(head, importer)
            if parent is not None:
                return self.global_name(parent, tail)
        return (Alternative(External(dotted)),)

    def _replaced(self, dotted: str) -> tuple[Alternative, ...]:
        found: list[Alternative] = []
        for module, statement in self.evaluator.index.replaced[dotted]:
            mark = Mark(module.path, statement.lineno, f"{dotted} is replaced here")
            scope = module.scope_of(statement)
            function = module.functions.get(scope)
            frame = (
                Frame(module=module, function=function) if function else self.evaluator.module_frame(module)
            )
            found.extend(item.noting(mark) for item in self.evaluator.evaluate(statement.value, frame))
        return tuple(found)

    def definition(
        self, definition: Assignment, frame: Frame, use: ast.AST | None
    ) -> tuple[Alternative, ...]:
        """The alternatives of one definition, under the conditions it shares not with the use."""
        guards = [
            Guard(test, holds, frame)
            for test, holds in conditions(frame.module, definition.statement, frame.scope, use)
        ]
        node = definition.expression
        if definition.kind == "definition":
            return (self._defined(node, frame),)
        if definition.kind == "import":
            return tuple(item.under(*guards) for item in self.imported(frame.module, definition.name))
        if definition.kind == "augmented":
            return tuple(item.under(*guards) for item in self._augmented(definition, frame))
        node, path = _looped_over(definition)
        found = self.evaluator.evaluate(node, frame)
        if definition.kind == "element":
            found = self.elements(found)
        for index in path:
            found = self.evaluator.project(self._first_only(found, index), index)
        return tuple(item.under(*guards) for item in found)

    def _augmented(self, definition: Assignment, frame: Frame) -> tuple[Alternative, ...]:
        """`action += noise` is arithmetic; a number that grows from turn to turn of a loop is not known."""
        statement = definition.statement
        assert isinstance(statement, ast.AugAssign)
        if not self.evaluator.evaluate(statement.target, frame):
            return (Alternative(Unknown(definition.name)),)
        kept = _operation(statement)
        return tuple(
            item
            if isinstance(item.value, Action | Computed | Noise)
            else replace(item, value=Unknown(definition.name))
            for item in self.evaluator.evaluate(kept, frame)
        ) or (Alternative(Unknown(definition.name)),)

    def _first_only(self, found: tuple[Alternative, ...], index: int) -> tuple[Alternative, ...]:
        """Of several results of an external acting call the action is the first; the others may be anything."""
        if index == 0:
            return found
        return tuple(
            replace(item, value=Unknown("a further result of the acting call"))
            if isinstance(item.value, Action) and isinstance(item.value.node, ast.Call)
            else item
            for item in found
        )

    def elements(self, alternatives: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
        """What a loop over, or an element of, something can be; an empty collection is not known, not nothing."""
        found: list[Alternative] = []
        for item in alternatives:
            if isinstance(item.value, Sequence):
                for one in item.value.elements[:8]:
                    found.extend(self.evaluator.evaluate(one, item.value.frame))
                if not item.value.elements or len(item.value.elements) > 8:
                    found.append(Alternative(Unknown("an element of a list")))
            elif isinstance(item.value, Environment | Action | Callable | Instance | Computed | Noise):
                found.append(item)
            elif (part := recorded(item.value)) is not None:
                found.append(replace(item, value=part))
            else:
                found.append(Alternative(Unknown("an element of something unknown")))
        return tuple(found)

    def _defined(self, node: ast.AST | None, frame: Frame) -> Alternative:
        parent = frame if frame.function is not None else None
        if isinstance(node, ast.ClassDef):
            return Alternative(Class(frame.module.classes[node], parent))
        assert node is not None
        return Alternative(Callable(frame.module.functions[node], parent=parent))


_BUILTINS = frozenset(
    [
        "int",
        "float",
        "list",
        "tuple",
        "dict",
        "set",
        "str",
        "bool",
        "len",
        "range",
        "map",
        "zip",
        "super",
        "getattr",
        "setattr",
        "isinstance",
        "print",
        "max",
        "min",
        "sum",
        "abs",
        "enumerate",
        "vars",
        "next",
        "iter",
        "sorted",
        "reversed",
        "open",
        "type",
        "any",
        "all",
        "hasattr",
        "callable",
        "object",
        "id",
        "repr",
        "round",
        "divmod",
    ]
)


def _operation(statement: ast.AugAssign) -> ast.BinOp:
    """`a += b` as the operation `a + b`."""
    kept: ast.BinOp | None = getattr(statement, "_operation", None)
    if kept is None:
        kept = ast.copy_location(ast.BinOp(statement.target, statement.op, statement.value), statement)
        statement._operation = kept  # type: ignore[attr-defined]
    return kept


def _item_stores(scope: ast.AST) -> dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.Subscript]]]:
    """The statements of a scope that assign to an item of a plain name, by that name."""
    kept: dict[str, list[tuple[ast.Assign | ast.AugAssign, ast.Subscript]]] | None
    kept = getattr(scope, "_item_stores", None)
    if kept is None:
        kept = {}
        for node in own_nodes(scope):
            if not isinstance(node, ast.Assign | ast.AugAssign):
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    kept.setdefault(target.value.id, []).append((node, target))
        scope._item_stores = kept  # type: ignore[attr-defined]
    return kept


def _looped_over(definition: Assignment) -> tuple[ast.AST | None, tuple[int, ...]]:
    """What a loop takes its elements from, through `enumerate`, `zip` and the like, and the rest of the path."""
    node, path = definition.expression, definition.path
    while definition.kind == "element" and isinstance(node, ast.Call) and not node.keywords and node.args:
        name = last_name(node.func)
        if name in ("reversed", "tqdm", "trange", "list", "tuple", "sorted") and len(node.args) == 1:
            node = node.args[0]
        elif name == "enumerate" and path[:1] == (1,):
            node, path = node.args[0], path[1:]
        elif name == "zip" and path and 0 <= path[0] < len(node.args):
            node, path = node.args[path[0]], path[1:]
        else:
            break
    return node, path


def _parameters(node: ast.AST) -> list[ast.arg]:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [*named, *(extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None)]


#: A use after the end of any scope: names seen from outside have their final value.
_END = ast.Pass()
