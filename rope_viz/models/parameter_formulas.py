"""How many parameters a class of transformers has, from formulas of its config.

`parameter_formulas.json` is made by tests/goldens/make_parameter_formulas.py. That script builds every class from
numbers that remember how they are used. For each model type it has `body`, the model without a head. `head` is what the
class that generates text adds, and `parts` are the keys of parts that are models of other types.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rope_viz.embedding.spec import MAX_LENGTH, require_number, short_repr
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import RENAMED_LAYERS
from rope_viz.storage.decode_json import read_own

LISTED = "moe_layers_enum"
"""Step 3 lists the layers with experts here: a list, or numbers with commas between them."""

WITH_EXPERTS = tuple(
    """
    first_k_dense_replace num_dense_layers moe_layer_freq moe_layers mlp_only_layers decoder_sparse_step
    moe_layer_interval interleave_moe_layer_step expert_layer_period
    """.split()
)
"""Keys by which a config says which layers have experts, where it does not list them by words."""


def first_number(value: Any, index: int = 0) -> Any:
    """Return the entry of a list that gives every layer its own number; any other value as it is."""
    if isinstance(value, (list, tuple)):
        return value[index] if index < len(value) else None
    return value


def read_whole(value: Any, default: int) -> int:
    """Return a whole number, or the default for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def is_dense(value: Callable[[str], Any], index: int) -> bool:
    """Return whether the layer at an index of a model with experts has none; `value` reads a key of the config."""
    listed = value("moe_layer_freq")
    if isinstance(listed, (list, tuple)):
        return index < len(listed) and not listed[index]
    kinds = value("mlp_layer_types")
    if isinstance(kinds, (list, tuple)) and index < len(kinds):
        return str(kinds[index]) == "dense"
    chosen = value("moe_layers") or value(LISTED)
    if isinstance(chosen, (list, tuple)):
        return index not in chosen
    written = value(LISTED)
    if isinstance(written, str):
        return str(index) not in (each.strip() for each in written.split(","))
    first = read_whole(value("first_k_dense_replace"), 0) or read_whole(value("num_dense_layers"), 0)
    first = read_whole(first_number(value("moe_layer_start_index")), first)
    last = read_whole(first_number(value("moe_layer_end_index")), -1)
    if index < first or 0 <= last < index or index in (value("mlp_only_layers") or ()):
        return True
    period = read_whole(value("expert_layer_period"), 0)
    if period > 0:
        return index % period != read_whole(value("expert_layer_offset"), 0) % period
    names = ("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval")
    step = next((step for name in names if (step := read_whole(value(name), 0)) > 0), 1)
    return (index + 1) % step != 0


DEEPEST = 6
MOST_ENTRIES = 10_000


@functools.cache
def formulas() -> Mapping[str, Mapping[str, Any]]:
    """Return {model type: its formulas, class defaults and parts}."""
    path = Path(__file__).with_name("parameter_formulas.json")
    found: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["types"]
    return found


def has_formula(kind: str) -> bool:
    """Return whether the number of parameters of a model type follows from a formula."""
    return bool({"body", "all"} & formulas().get(kind, {}).keys())


def class_defaults(kind: str) -> Mapping[str, Any]:
    """Return the class defaults of the numbers and switches that memory depends on; {} for an unknown type."""
    found: Mapping[str, Any] = formulas().get(kind, {}).get("defaults", {})
    return found


@functools.cache
def cache_layouts() -> Mapping[str, Any]:
    """Return {model type: {layer type: formulas of what a layer keeps}} where heads and windows do not decide it."""
    found: Mapping[str, Any] = read_own(__file__, "cache_layouts.json")
    return found


@functools.cache
def formula_keys() -> frozenset[str]:
    """Return every key of a config that a formula reads, or that is a default, an alias or the path of a part."""
    found = set[str]()
    for entry in formulas().values():
        for name in ("defaults", "aliases", "lists", "derived", "unfollowed", "parts"):
            found.update(entry.get(name, {}))
        found.update(entry.get("aliases", {}).values())
        for text in (*(entry.get(name, "") for name in ("body", "head", "all")), *entry.get("derived", {}).values()):
            found.update(read_operands(text))
    layouts = [one for one in cache_layouts().values() if isinstance(one, Mapping)]
    for layout in layouts:
        for formula in layout.values():
            parts = formula.values() if isinstance(formula, Mapping) else (formula,)
            found.update(key for part in parts for key in read_operands(part))
    return frozenset(word for key in found for word in key.split("."))


def read_operands(text: Any) -> set[str]:
    """Return the names of a formula that are no function, and no word that `count` looks for."""
    if not isinstance(text, str):
        return set()
    without_words = re.sub(r"\bcount\(([\w.]+),\s*\w+\)", r"\1", text)
    return set(re.findall(r"(?<![\w.])[A-Za-z_][\w.]*(?![\w.(])", without_words)) - {"not", "and", "or"}


def find_names(table: Any) -> set[str]:
    """Return every name in the formulas of one model type."""
    return set(re.findall(r"[A-Za-z_]\w*", json.dumps(table)))


def list_default_sizes(kind: str) -> list[str]:
    """Return the numbers of the formulas of a model type that its class has a default for, in its order."""
    entry = formulas().get(kind, {})
    names = find_names([entry.get(key) for key in ("body", "head", "all")]) | find_names(cache_layouts().get(kind))
    return [key for key, value in class_defaults(kind).items() if key in names and read_whole(value, 0) > 0]


def class_aliases(kind: str) -> Mapping[str, str]:
    """Return {other name: the name of the class} of the keys of a model type."""
    found: Mapping[str, str] = formulas().get(kind, {}).get("aliases", {})
    return found


def default_layer_types(kind: str, count: int) -> list[str] | None:
    """Return the type of each of `count` layers as the class fills them in, None where it fills in none."""
    return default_list(kind, count, "layer_types", "layers_block_type", "block_types")


def default_list(kind: str, count: int, *names: str) -> list[str] | None:
    """Return the words that the class fills in for `count` layers under the first of these keys that it has."""
    words = _default_words(kind, count, names)
    return None if words is None else list(words)


# A list may have ten thousand entries.
@functools.lru_cache(maxsize=64)
def _default_words(kind: str, count: int, names: tuple[str, ...]) -> tuple[str, ...] | None:
    rules = formulas().get(kind, {}).get("lists", {})
    rule = next((rules[key] for key in names if key in rules), None)
    return None if rule is None else tuple(RENAMED_LAYERS.get(word, word) for word in expand(rule, count))


def count_parameters(kind: str, config: Mapping[str, Any], which: str = "all") -> int:
    """Return the number of parameters of the class of a model type, tied embeddings once.

    `which` is "body" for the model without the head. Raises `ValueError` naming a key that is missing or wrong.
    """
    return Sizes(config, kind).count(which)


@dataclass(frozen=True)
class Sizes:
    """The numbers of a config by their dotted names, with the defaults of its class behind them.

    `outer` are the defaults that a wrapper's class has for a part that is not in the file, `prefix` is the part's path.
    """

    config: Mapping[str, Any]
    kind: str
    depth: int = 0
    outer: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""

    @property
    def entry(self) -> Mapping[str, Any]:
        return formulas().get(self.kind, {})

    def count(self, which: str) -> int:
        """Return the number of parameters of the whole class, or of its "body"."""
        if self.depth > DEEPEST or not self.entry:
            raise ValueError(TEXTS("parameters.unknown", kind=short_repr(self.kind)))
        self.require_followed()
        if which == "all" and "all" in self.entry:
            total = self.evaluate(self.entry["all"])
        elif "body" not in self.entry:
            raise ValueError(TEXTS("parameters.without_head", kind=short_repr(self.kind)))
        else:
            total = self.evaluate(self.entry["body"])
            total += self.evaluate(self.entry.get("head", "0")) if which == "all" else 0
        for path, (usual, part, *several) in self.entry.get("parts", {}).items():
            total += self.part(path, usual).count(part) * (several[0] if several else 1)
        return total

    def require_followed(self) -> None:
        """Raise `ValueError` where the config gives a key that the formula does not follow another value."""
        for key, usual in self.entry.get("unfollowed", {}).items():
            value = self.value(key)
            if key == "*" or (value is not None and value != usual):
                values = {"kind": short_repr(self.kind), "key": f"{self.prefix}{key}", "value": short_repr(value)}
                raise ValueError(TEXTS("parameters.unknown" if key == "*" else "parameters.unknown_where", **values))

    def part(self, path: str, usual: str) -> Sizes:
        """Return the sizes of the part at a path, of the type that it names."""
        found = self.mapping(path)
        defaults = self.entry.get("defaults", {})
        if found is None:
            return Sizes({}, usual, self.depth + 1, {**defaults, **self.outer}, f"{self.prefix}{path}.")
        # Older files name the wrapper's type in its parts.
        kind = found.get("model_type")
        known = isinstance(kind, str) and kind != self.kind and has_formula(kind)
        return Sizes(found, str(kind) if known else usual, self.depth + 1)

    def mapping(self, path: str) -> Mapping[str, Any] | None:
        """Return the object at a dotted path of the config, None where there is none."""
        found: Any = self.config
        for key in path.split(".") if path else ():
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else None

    def value(self, name: str) -> Any:
        """Return the value of a dotted name: the config's own, else the default of the class."""
        path, _, key = name.rpartition(".")
        config = self.mapping(path)
        kind = (config or {}).get("model_type") if path else self.kind
        entry = formulas().get(kind, {}) if isinstance(kind, str) else {}
        config = config or {}
        named: Mapping[str, str] = self.entry.get("aliases", {}) if path else {}
        inside = {alias.removeprefix(path + "."): own for alias, own in named.items() if alias.startswith(path + ".")}
        aliases = {**entry.get("aliases", {}), **inside}.items()
        others = [alias for alias, own in aliases if own == key] + [own for alias, own in aliases if alias == key]
        derived = entry.get("derived", {}).get(key)
        for spelling in (key, *others):
            if config.get(spelling) is not None and (derived is None or config[spelling] != "auto"):
                return config[spelling]
        if derived is not None and (key in config or entry.get("defaults", {}).get(key) is None) and not path:
            return self.evaluate(derived)
        if key in config:
            return None
        own: Mapping[str, Any] = self.entry.get("defaults", {})
        places = ((self.outer, self.prefix + name), (entry.get("defaults", {}), key), (own, name))
        return next((place[full] for place, full in places if full in place), None)

    def is_given(self, name: str) -> bool:
        """Return whether the config itself has a value under a dotted name."""
        path, _, key = name.rpartition(".")
        return (self.mapping(path) or {}).get(key) is not None

    def number(self, name: str) -> float:
        """Return a number under a dotted name; a switch is 1 or 0, and null is 0, for head_dim the width of a head."""
        value = self.value(name)
        path, _, key = name.rpartition(".")
        if value is None and key == "head_dim":
            sizes = (f"{path}.{one}".lstrip(".") for one in ("hidden_size", "num_attention_heads"))
            return operate(ast.FloorDiv(), *map(self.number, sizes))
        if value is None and key in ("hidden_size", "vocab_size", "num_hidden_layers"):
            raise ValueError(TEXTS("value.missing", name=name))
        if isinstance(value, (list, tuple)) and value:
            # A list with a number for every layer: all layers together have as many times its mean.
            whole = [one for one in value if read_whole(one, -1) >= 0]
            value = sum(whole) / len(whole) if len(whole) == len(value) else value[0]
        if value is None or isinstance(value, (bool, list, tuple, Mapping)):
            return int(bool(value))
        if isinstance(value, float) and not value.is_integer():
            require_number(value, name)
            return value
        require_number(value, name, least=-1, most=MAX_LENGTH, integer=True)
        return int(value)

    def entries(self, name: str) -> list[Any]:
        """Return the list under a dotted name, or what the class fills in for it."""
        value = self.value(name)
        if value is None:
            rule = self.entry.get("lists", {}).get(name)
            path, _, key = name.rpartition(".")
            prefix = path + "." if path else ""
            count = min(int(self.number(prefix + "num_hidden_layers")), MOST_ENTRIES)
            if key == "mlp_layer_types" and any(self.is_given(prefix + other) for other in WITH_EXPERTS):
                layers = (is_dense(lambda name: self.value(prefix + name), index) for index in range(count))
                value = ["dense" if dense else "sparse" for dense in layers]
            else:
                value = expand(rule, count) if rule else []
        if not isinstance(value, (list, tuple)):
            raise ValueError(TEXTS("parameters.list", name=name, value=short_repr(value)))
        return [RENAMED_LAYERS.get(one, one) if isinstance(one, str) else one for one in value[:MOST_ENTRIES]]

    def evaluate(self, text: str) -> int:
        return round(self.walk(parse(text)))

    def walk(self, node: ast.AST) -> float:
        if isinstance(node, ast.Constant):
            return node.value  # type: ignore[return-value]
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.number(dotted(node))
        if isinstance(node, ast.UnaryOp):
            return 1 - self.call("has", [node.operand]) if isinstance(node.op, ast.Not) else -self.walk(node.operand)
        if isinstance(node, ast.BinOp):
            left, right = self.walk(node.left), self.walk(node.right)
            return operate(node.op, left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.call(node.func.id, node.args)
        raise ValueError(f"a formula has an unknown part: {ast.dump(node)[:60]}")

    def call(self, name: str, args: list[ast.expr]) -> int:
        """Return the value of a function of the formulas: has(key), int(x), len(key), sum(key), count(key, word).

        differ(key, other) and same(key, other) compare two numbers of the same part.
        dense(key) is the number of layers without experts, of as many as the key says.
        below(key, size) is the number of entries of a list that are smaller than a size of the same part.
        """
        if name == "int":
            return int(self.walk(args[0]))
        key = dotted(args[0])
        if name == "dense":
            prefix = key.rpartition(".")[0] + "." * ("." in key)
            if prefix + "mlp_layer_types" in self.entry.get("lists", {}):
                return self.entries(prefix + "mlp_layer_types")[: int(self.number(key))].count("dense")
            layers = range(min(int(self.number(key)), MOST_ENTRIES))
            return sum(is_dense(lambda name: self.value(prefix + name), index) for index in layers)
        if name == "has":
            return int(bool(self.value(key)))
        if name in ("differ", "same"):
            other = key.rpartition(".")[0] + "." * ("." in key) + dotted(args[1])
            return int((self.number(key) == self.number(other)) == (name == "same"))
        if name == "count":
            word = dotted(args[1])
            return self.entries(key).count(RENAMED_LAYERS.get(word, word))
        listed = self.entries(key)
        if name == "below":
            limit = self.number(key.rpartition(".")[0] + "." * ("." in key) + dotted(args[1]))
            return sum(isinstance(one, int) and one < limit for one in listed)
        return len(listed) if name == "len" else sum(int(bool(one)) for one in listed)


@functools.lru_cache(512)
def parse(text: str) -> ast.AST:
    """Return a formula as a tree."""
    return ast.parse(text, mode="eval").body


def dotted(node: ast.AST) -> str:
    """Return a dotted name of a formula as text."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError("a formula has no name where one is expected")


def operate(op: ast.operator, left: float, right: float) -> float:
    """Return the result of one operation of a formula. Raises `ValueError` for a division by zero."""
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.Mult):
        return left * right
    if not right:
        raise ValueError(TEXTS("parameters.zero"))
    return left // right if isinstance(op, ast.FloorDiv) else left / right


def expand(rule: Mapping[str, Any], count: int) -> list[Any]:
    """Return the list of `count` entries that a rule of the file describes."""
    if "list" in rule:
        return list(rule["list"])
    first, cycle, last = rule.get("first", []), rule["cycle"], rule.get("last", [])
    middle = min(count, MOST_ENTRIES) - len(first) - len(last)
    return [*first, *(cycle[index % len(cycle)] for index in range(max(middle, 0))), *last][:count]
