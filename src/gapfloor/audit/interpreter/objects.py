"""Attributes: of instances, classes, modules, parsed options and environments.

An instance's attribute is what its constructor was given, in the frame of that construction, so that two objects of
one class (a runner for training, a runner for test) are kept apart.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.binding import additions_to_sequence, changes_of_mapping
from gapfloor.audit.interpreter.options import field_of, is_settings_class
from gapfloor.audit.interpreter.primitives import DISTRIBUTION, RANKINGS, draw_of_receiver
from gapfloor.audit.interpreter.reaching_definitions import conditions, reaching
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
    Option,
    Sequence,
    SuperOf,
    Unknown,
)
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, last_name, own_nodes

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

_SETTINGS = re.compile(
    r"(^|\.|_)(args?|config|cfg|conf|flags|hparams?|opts?|options|params|settings)$", re.IGNORECASE
)
_SPACES = frozenset({"action_space", "observation_space", "single_action_space", "single_observation_space"})
_INNER_ENVIRONMENT = frozenset({"env", "venv", "envs", "unwrapped", "vec_env", "gym_env"})
_ENVIRONMENT_BASE = re.compile(r"(env|environment|wrapper|vecenv|envwrapper)$", re.IGNORECASE)
_USE_END = ast.Pass()
_SET_AT = " set at "


#: What every torch module can do; a function of the repository with such a name is not meant.
_MODULE_METHODS = frozenset(
    {"train", "eval", "to", "cuda", "cpu", "parameters", "named_parameters", "state_dict", "load_state_dict"}
    | {"modules", "children", "apply", "zero_grad", "float", "half", "share_memory", "requires_grad_"}
)
#: Library functions and classes that hold settings under attributes or keys.
SETTINGS_MAKERS = frozenset(
    {"SimpleNamespace", "Namespace", "Munch", "EasyDict", "edict", "ConfigDict", "DotMap", "AttrDict", "Box"}
    | {"safe_load", "full_load", "unsafe_load", "OmegaConf", "DictConfig", "compose", "parse_known_args"}
    | {"to_object", "to_container"}
)


class ObjectModel:
    """Looks up attributes for one evaluator."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._mro: dict[int, list[ClassInfo | str]] = {}
        self._by_name: dict[int, bool] = {}
        self._is_environment: dict[int, bool] = {}
        self._counted_by: dict[ClassInfo, set[str]] = {}

    def mro(self, info: ClassInfo) -> list[ClassInfo | str]:
        """The class and its bases, depth first; external ones by name."""
        if id(info) not in self._mro:
            self._mro[id(info)] = [info]
            found: list[ClassInfo | str] = [info]
            for base in info.node.bases:
                resolved = self.evaluator.class_of(base, info.module)
                for item in self.mro(resolved) if isinstance(resolved, ClassInfo) else [resolved]:
                    if item not in found:
                        found.append(item)
            self._mro[id(info)] = found
        return self._mro[id(info)]

    def method(self, info: ClassInfo, name: str, *, after: ClassInfo | None = None) -> FunctionInfo | None:
        """The method `name` of the class or its bases in the repository (beyond `after`, for `super()`)."""
        is_past = after is None
        for item in self.mro(info):
            if isinstance(item, ClassInfo):
                if is_past and name in item.methods:
                    return item.methods[name]
                is_past = is_past or item is after
        return None

    def external_bases(self, info: ClassInfo) -> list[str]:
        """The names of bases outside the repository."""
        return [item for item in self.mro(info) if isinstance(item, str)]

    def is_environment(self, info: ClassInfo) -> bool:
        """Whether objects of the class are environments or wrap them."""
        if id(info) not in self._is_environment:
            self._is_environment[id(info)] = self._looks_like_environment(info)
        return self._is_environment[id(info)]

    def _looks_like_environment(self, info: ClassInfo) -> bool:
        if any(_ENVIRONMENT_BASE.search(base.rsplit(".", 1)[-1]) for base in self.external_bases(info)):
            return True
        own = [item for item in self.mro(info) if isinstance(item, ClassInfo)]
        names = {name for item in own for name in item.methods}
        is_named = any(_ENVIRONMENT_BASE.search(item.name) for item in own)
        # An environment may be reset to a level only; other objects have resets of their own (of noise, of weights).
        resets = {name for name in names if name == "reset" or (is_named and name.startswith("reset_"))}
        return bool(resets) and bool(names & {"step", "step_wait", "step_async"})

    def attribute(self, item: Alternative, name: str, node: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
        """The alternatives of `item.name`."""
        value = item.value
        if isinstance(value, Module):
            return self.evaluator.names.global_name(value.info, name) if name else (item,)
        if isinstance(value, External) and value.name == "wandb" and name == "config":
            return self._tracked_settings(frame)
        if isinstance(value, External):
            return self._of_external(value, name, frame)
        if isinstance(value, Instance):
            return self._of_instance(item, value, name, node, frame)
        if isinstance(value, Class):
            return self._of_class(item, value.info, name, value.parent)
        if isinstance(value, SuperOf):
            return self._of_super(value, name)
        if isinstance(value, Namespace):
            return self.option(name, value, node, frame)
        if isinstance(value, Environment):
            # Spaces and specifications of an environment are fixed.
            return (item,) if name in _INNER_ENVIRONMENT else (Alternative(Computed(node, frame)),)
        if isinstance(value, Mapping) and name in value.items:
            return self.evaluator.evaluate_binding(value.items[name], name)
        if isinstance(value, Action | Computed | Noise):
            return (item,)
        if isinstance(value, ExternalObject) and value.name.rsplit(".", 1)[-1] in RANKINGS:
            is_index = name in ("indices", "arg")
            return (
                Alternative(
                    Action("argmax", value.call, value.frame)
                    if is_index
                    else Computed(value.call, value.frame)
                ),
            )
        if isinstance(value, ExternalObject):
            if value.name.rsplit(".", 1)[-1] in SETTINGS_MAKERS:
                return self.option(name, Namespace(), node, frame)
            if name in ("mode", "mean", "loc") and DISTRIBUTION.search(value.name.rsplit(".", 1)[-1]):
                return (Alternative(Action("argmax", node, frame, needs_distribution=True)),)
            is_own = value.name.startswith(
                ("object().", "?.")
            )  # an attribute of the repository that cannot be read
            if is_own and name in ("mean", "mode", "loc") and _is_centre_of_policy(node, frame):
                return (Alternative(Action("argmax", node, frame, needs_distribution=True)),)
            return (Alternative(External(f"{value.name}().{name}")),)
        if isinstance(value, Unknown | Option):
            text = value.text if isinstance(value, Unknown) else value.name
            if name in _SPACES:
                return (Alternative(Computed(node, frame)),)
            if name in ("mean", "mode", "loc") and _is_centre_of_policy(node, frame):
                return (Alternative(Action("argmax", node, frame, needs_distribution=True)),)
            if _SETTINGS.search(text.split(_SET_AT)[0]):
                return self.option(name, Namespace(), node, frame)
            return (Alternative(Unknown(f"{text}.{name}")),)
        return (Alternative(Unknown(name)),)

    def _tracked_settings(self, frame: Frame) -> tuple[Alternative, ...]:
        """`wandb.config`: the settings that the file's one `wandb.init(config=...)` is given, else settings by name."""
        given = [
            keyword.value
            for node in frame.module.order
            if isinstance(node, ast.Call)
            and last_name(node.func) == "init"
            and "wandb" in ast.dump(node.func)
            for keyword in node.keywords
            if keyword.arg == "config"
        ]
        if len(given) == 1 and frame.module.scope_of(given[0]) is frame.scope:
            found = self.evaluator.evaluate(given[0], frame)
            if all(isinstance(item.value, Mapping | Namespace | Instance) for item in found):
                return found
        return (Alternative(Namespace()),)

    def _of_external(self, value: External, name: str, frame: Frame) -> tuple[Alternative, ...]:
        if value.name in ("absl.flags", "tensorflow.app.flags", "tensorflow.flags") and name == "FLAGS":
            return (Alternative(Namespace(module=frame.module)),)
        return self.evaluator.names.dotted(f"{value.name}.{name}", frame.module)

    def option(self, name: str, space: Namespace, node: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
        """The setting `name` of parsed options."""
        entry = self.evaluator.options.given_entry(name)
        if entry is None and space.fields is not None:
            entry = field_of(space.fields, name)
        if entry is None and not space.path:
            entry = self.evaluator.options.find(name, space.module)
        if entry is not None and not entry.has_default:
            # A required field gets its value from a configuration file.
            stated = self.evaluator.options.from_files((name,), frame.chain()[0].module)
            entry = stated if stated is not None and stated.has_default else entry
        if entry is None:
            path = (*space.path, name)
            if self.evaluator.options.is_section(path):
                return (Alternative(Namespace(space.module, None, path)),)
            entry = self.evaluator.options.from_files(path, frame.chain()[0].module)
        if entry is None:
            return self._set_once(name, frame) or (Alternative(Unknown(f"args.{name}")),)
        is_overwritten = entry.module is not None and bool(
            self.evaluator.index.outside_assignments(name, frame.chain()[0].module, but=entry.mark)
        )
        read = Mark(frame.module.path, getattr(node, "lineno", 0), f"option '{entry.name}' is read here")
        # A setting that the code itself overwrites after parsing has no default that one could rely on.
        option = Option(entry.name, entry.default, entry.has_default and not is_overwritten)
        return (Alternative(option, marks=(read, entry.mark), origin="option"),)

    def _set_once(self, name: str, frame: Frame) -> tuple[Alternative, ...]:
        """An attribute that is not a setting itself, but is computed from settings in one place of the same script."""
        places = self.evaluator.index.outside_assignments(name, frame.chain()[0].module)
        if len(places) != 1:
            return ()
        module, expression = places[0]
        if isinstance(module.parents[expression], ast.AugAssign):
            return ()  # the expression is what is added, not what the attribute becomes
        scope = module.scope_of(expression)
        home = next((one for one in frame.chain() if one.scope is scope), None)
        if home is None:
            return ()
        mark = Mark(module.path, expression.lineno, f"'{name}' is set here")
        return tuple(item.noting(mark) for item in self.evaluator.evaluate(expression, home))

    def _of_class(
        self, item: Alternative, info: ClassInfo, name: str, parent: Frame | None
    ) -> tuple[Alternative, ...]:
        method = self.method(info, name)
        if method is not None:
            receiver = item if method.has_decorator("classmethod") else None
            return (Alternative(Callable(method, receiver, parent)),)
        found = self._class_level(info, name)
        return found or (Alternative(Unknown(f"{info.name}.{name}")),)

    def _class_level(self, info: ClassInfo, name: str) -> tuple[Alternative, ...]:
        for base in self.mro(info):
            if not isinstance(base, ClassInfo):
                continue
            for definition in self.evaluator.definitions(base.module, base.node).get(name, []):
                if definition.kind == "assign":
                    frame = self.evaluator.module_frame(base.module)
                    return self.evaluator.evaluate(definition.expression, frame)
        return ()

    def _of_super(self, value: SuperOf, name: str) -> tuple[Alternative, ...]:
        receiver = value.receiver
        start = receiver.value.info if receiver and isinstance(receiver.value, Instance) else value.info
        method = self.method(start, name, after=value.info)
        if method is not None:
            return (Alternative(Callable(method, receiver)),)
        bases = self.external_bases(value.info)
        return (Alternative(External(f"{bases[0] if bases else 'object'}().{name}")),)

    def _of_instance(
        self, item: Alternative, value: Instance, name: str, node: ast.AST, frame: Frame
    ) -> tuple[Alternative, ...]:
        method = self.method(value.info, name)
        if method is not None:
            if method.has_decorator("property", "cached_property"):
                return self.evaluator.returns(self.evaluator.bound_frame(method, None, frame, item, None))
            receiver = None if method.has_decorator("staticmethod") else item
            bound = Alternative(Callable(method, receiver, self._class_frame(value)))
            return (bound, *self._from_outside(name, frame))
        changed = self.evaluator.state.value(item, name, node, frame)
        if changed is not None:
            return changed
        if name == "training" and self.is_network(value.info):
            return (self._initial_mode(frame),)
        if name in ("mean", "mode", "loc") and self.is_distribution(value.info):
            return (Alternative(Action("argmax", node, frame, needs_distribution=True)),)
        found = [*self._assigned(item, value, name)]
        if is_settings_class(value.info.node):
            return self._setting_field(value, name, node, frame)
        if not found:
            found.extend(self._given_to_base(value, name))
        if not found:
            found.extend(self._class_level(value.info, name))
        if self._sets_by_name(value.info):
            option = self.option(name, Namespace(), node, frame)
            found.extend(one for one in option if isinstance(one.value, Option))
        found.extend(self._from_outside(name, frame))
        if name in self._counted(value.info):
            found.append(Alternative(Unknown(f"self.{name}, which is counted")))
        if not found and self.is_environment(value.info) and name in _INNER_ENVIRONMENT:
            return (item,)
        if not found and name in _MODULE_METHODS and self.is_network(value.info):
            return (Alternative(External(f"torch.nn.Module().{name}")),)
        return tuple(found) or (Alternative(Unknown(f"self.{name}")),)

    def is_distribution(self, info: ClassInfo) -> bool:
        """Whether the class derives from a library's distribution."""
        return any(DISTRIBUTION.search(base.rsplit(".", 1)[-1]) for base in self.external_bases(info))

    def is_network(self, info: ClassInfo) -> bool:
        """Whether the class is a torch module or the like."""
        return any(
            base.rsplit(".", 1)[-1] in ("Module", "LightningModule", "ScriptModule")
            for base in self.external_bases(info)
        )

    def _initial_mode(self, frame: Frame) -> Alternative:
        """A module trains until it is told otherwise; that is only sure where nobody in reach tells it."""
        reach = self.evaluator.index.reach(frame.chain()[0].module)
        for path in reach:
            for function in self.evaluator.index.modules[path].functions.values():
                if any(last_name(call.func) == "eval" for call in function.calls):
                    return Alternative(Unknown("the module's mode (training or evaluation)"))
        mark = Mark(
            frame.module.path,
            frame.function.node.lineno if frame.function else 1,
            "the mode is never changed",
        )
        return Alternative(KnownValue(True), marks=(mark,), origin="default")

    def _from_outside(self, name: str, frame: Frame) -> list[Alternative]:
        """Something unknown, when code outside the class assigns an attribute of that name to some object."""
        places = self.evaluator.index.set_from_outside.get(name, [])
        if not places:
            return []
        # A script can only run what it imports; a file that it cannot load changes nothing.
        reach = self.evaluator.index.reach(frame.chain()[0].module)
        return [
            Alternative(Unknown(f"{name}{_SET_AT}{module.path}:{value.lineno}"))
            for module, value in places
            if module.path in reach
        ][:1]

    def _counted(self, info: ClassInfo) -> set[str]:
        """The attributes that methods of a class change with `self.name += ...`: the first value does not last."""
        if info not in self._counted_by:
            self._counted_by[info] = {
                node.target.attr
                for base in self.mro(info)
                if isinstance(base, ClassInfo)
                for method in base.methods.values()
                for node in own_nodes(method.node)
                if isinstance(node, ast.AugAssign)
                and isinstance(node.target, ast.Attribute)
                and isinstance(node.target.value, ast.Name)
                and node.target.value.id == "self"
            }
        return self._counted_by[info]

    def _class_frame(self, value: Instance) -> Frame | None:
        return value.init.parent if value.init is not None else None

    def _setting_field(
        self, value: Instance, name: str, node: ast.AST, frame: Frame
    ) -> tuple[Alternative, ...]:
        call = value.made_at
        if call is not None and value.frame is not None and isinstance(call.func, ast.Name | ast.Attribute):
            for keyword in call.keywords:
                if keyword.arg == name and last_name(call.func) == value.info.name:
                    return self.evaluator.evaluate_binding(Binding(keyword.value, value.frame), name)
        return self.option(name, Namespace(fields=value.info), node, frame)

    def _assigned(self, item: Alternative, value: Instance, name: str) -> list[Alternative]:
        """What methods of the class assign to `self.name`; the constructor in its own frame."""
        key = f"self.{name}"
        found: list[Alternative] = []
        for base in self.mro(value.info):
            if not isinstance(base, ClassInfo):
                continue
            for method in base.methods.values():
                definitions = self.evaluator.definitions(base.module, method.node).get(key, [])
                if not definitions:
                    continue
                frame = self._method_frame(item, value, base, method)
                alive, _ = reaching(base.module, method.node, definitions, _USE_END)
                for definition in alive:
                    for one in self.evaluator.names.definition(definition, frame, None):
                        found.append(self._as_changed(one, value.info, name))
            if found and "__init__" in base.methods:
                break
        return found

    def _as_changed(self, item: Alternative, info: ClassInfo, name: str) -> Alternative:
        """A mapping or list that other methods change is open: what they put into it cannot be told apart."""
        if not isinstance(item.value, Mapping | Sequence):
            return item
        for base in self.mro(info):
            for method in base.methods.values() if isinstance(base, ClassInfo) else ():
                if isinstance(item.value, Mapping):
                    keys, is_open = changes_of_mapping(name, method.node)
                    if keys or is_open:
                        kept = {key: one for key, one in item.value.items.items() if key not in keys}
                        item = replace(item, value=Mapping(kept, is_open=True))
                elif additions_to_sequence(name, method.node) != []:
                    return replace(item, value=Unknown(f"self.{name}, which is changed later"))
        return item

    def _method_frame(
        self, item: Alternative, value: Instance, base: ClassInfo, method: FunctionInfo
    ) -> Frame:
        if method.name == "__init__" and value.init is not None:
            if value.init.function is method:
                return value.init
            inner = self._base_init(value.init, base)
            if inner is not None:
                return inner
        home = value.init or value.frame or self.evaluator.module_frame(base.module)
        return self.evaluator.bound_frame(method, None, home, item, None)

    def _base_init(self, init: Frame, base: ClassInfo) -> Frame | None:
        """The frame in which a base's constructor runs, from the call inside the derived one."""
        assert init.function is not None
        for node in own_nodes(init.function.node):
            if isinstance(node, ast.Call) and last_name(node.func) == "__init__":
                for target in self.evaluator.evaluate(node.func, init):
                    if isinstance(target.value, Callable):
                        frame = self.evaluator.bound_frame(
                            target.value.function, node, init, init.receiver, None
                        )
                        if target.value.function.owner is base:
                            return frame
                        deeper = self._base_init(frame, base)
                        if deeper is not None:
                            return deeper
        return None

    def _given_to_base(self, value: Instance, name: str) -> list[Alternative]:
        """An external base keeps what it was given under the same name, as constructors do by habit."""
        if not self.external_bases(value.info):
            return []
        calls: list[tuple[ast.Call, Frame]] = []
        init = value.init
        if init is not None and init.function is not None:
            for node in own_nodes(init.function.node):
                if isinstance(node, ast.Call) and last_name(node.func) == "__init__":
                    calls.append((node, init))
        elif value.made_at is not None and value.frame is not None:
            calls.append((value.made_at, value.frame))
        for call, frame in calls:
            for keyword in call.keywords:
                if keyword.arg == name:
                    return [*self.evaluator.evaluate_binding(Binding(keyword.value, frame), name)]
            if name in _INNER_ENVIRONMENT:
                for argument in call.args[:1]:
                    return [*self.evaluator.evaluate(argument, frame)]
        return []

    def _sets_by_name(self, info: ClassInfo) -> bool:
        """Whether attributes are set from names at run time, so that a setting may be one of them."""
        if id(info) not in self._by_name:
            self._by_name[id(info)] = self._looks_set_by_name(info)
        return self._by_name[id(info)]

    def _looks_set_by_name(self, info: ClassInfo) -> bool:
        for method in info.methods.values():
            for node in own_nodes(method.node):
                if isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "__setattr__"):
                    return True
                if isinstance(node, ast.Attribute) and node.attr == "__dict__":
                    return True
        return False


def _is_centre_of_policy(node: ast.AST, frame: Frame) -> bool:
    """Whether `dist.mean` is read as a property of what is drawn from elsewhere in the same function."""
    if not isinstance(node, ast.Attribute) or draw_of_receiver(node.value) != "sampled":
        return False
    parent = frame.module.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return False  # a method: the mean of any tensor
    receiver = ast.dump(node.value)
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("sample", "rsample", "log_prob")
        and ast.dump(one.func.value) == receiver
        for one in own_nodes(frame.scope)
    )


def guards_of(frame: Frame, node: ast.AST) -> list[Guard]:
    """The conditions under which `node` runs inside its frame."""
    return [Guard(test, holds, frame) for test, holds in conditions(frame.module, node, frame.scope, None)]
