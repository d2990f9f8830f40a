"""Programming languages, as tables of tree-sitter node types."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser, QueryCursor


@dataclass(frozen=True, eq=False)
class Language:
    """Node types of a language's grammar."""

    package: str
    suffixes: tuple[str, ...]
    functions: frozenset[str]
    classes: frozenset[str]
    calls: dict[str, str]  # node types, with the field of the called expression
    bases: frozenset[str] = frozenset()  # nodes, or names of fields, that list base classes
    # Nodes that only qualify the names in them, with the field of their name.
    scopes: dict[str, str] = field(default_factory=dict)
    entry: str = "language"  # the function of the package that returns the grammar
    own_methods: bool = False  # methods call each other by their unqualified names


_IMPORTS = {"import_statement", "import_from_statement"}
_SCRIPT_FUNCTIONS = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "method_definition",
        "arrow_function",
        "function_expression",
    }
)
_SCRIPT_CALLS = {"call_expression": "function", "new_expression": "constructor"}
_TYPESCRIPT = Language(
    "tree_sitter_typescript",
    (".ts", ".mts", ".cts"),
    functions=_SCRIPT_FUNCTIONS,
    classes=frozenset(
        {
            "class_declaration",
            "abstract_class_declaration",
            "interface_declaration",
            "enum_declaration",
            "type_alias_declaration",
        }
    ),
    calls=_SCRIPT_CALLS,
    bases=frozenset({"class_heritage", "extends_type_clause"}),
    entry="language_typescript",
)
_C_CLASSES = frozenset({"struct_specifier", "class_specifier", "enum_specifier"})

LANGUAGES = (
    Language(
        "tree_sitter_python",
        (".py", ".pyi"),
        functions=frozenset({"function_definition"}),
        classes=frozenset({"class_definition"}),
        calls={"call": "function"},
        bases=frozenset({"superclasses"}),
    ),
    Language(
        "tree_sitter_javascript",
        (".js", ".jsx", ".mjs", ".cjs"),
        functions=_SCRIPT_FUNCTIONS,
        classes=frozenset({"class_declaration"}),
        calls=_SCRIPT_CALLS,
        bases=frozenset({"class_heritage"}),
    ),
    _TYPESCRIPT,
    replace(_TYPESCRIPT, suffixes=(".tsx",), entry="language_tsx"),
    Language(
        "tree_sitter_go",
        (".go",),
        functions=frozenset({"function_declaration", "method_declaration"}),
        classes=frozenset({"type_spec"}),
        calls={"call_expression": "function"},
    ),
    Language(
        "tree_sitter_java",
        (".java",),
        functions=frozenset({"method_declaration", "constructor_declaration"}),
        classes=frozenset(
            {
                "class_declaration",
                "interface_declaration",
                "enum_declaration",
                "record_declaration",
            }
        ),
        calls={"method_invocation": "name", "object_creation_expression": "type"},
        bases=frozenset({"superclass", "super_interfaces", "extends_interfaces"}),
        own_methods=True,
    ),
    Language(
        "tree_sitter_rust",
        (".rs",),
        functions=frozenset({"function_item"}),
        classes=frozenset({"struct_item", "enum_item", "trait_item"}),
        calls={"call_expression": "function"},
        scopes={"impl_item": "type", "mod_item": "name"},
    ),
    Language(
        "tree_sitter_c",
        (".c", ".h"),
        functions=frozenset({"function_definition"}),
        classes=_C_CLASSES,
        calls={"call_expression": "function"},
    ),
    Language(
        "tree_sitter_cpp",
        (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"),
        functions=frozenset({"function_definition"}),
        classes=_C_CLASSES,
        calls={"call_expression": "function"},
        bases=frozenset({"base_class_clause"}),
        scopes={"namespace_definition": "name"},
        own_methods=True,
    ),
    Language(
        "tree_sitter_c_sharp",
        (".cs",),
        functions=frozenset(
            {"method_declaration", "constructor_declaration", "local_function_statement"}
        ),
        classes=frozenset(
            {
                "class_declaration",
                "interface_declaration",
                "struct_declaration",
                "record_declaration",
                "enum_declaration",
            }
        ),
        calls={"invocation_expression": "function", "object_creation_expression": "type"},
        bases=frozenset({"base_list"}),
        own_methods=True,
    ),
    Language(
        "tree_sitter_php",
        (".php",),
        functions=frozenset({"function_definition", "method_declaration"}),
        classes=frozenset({"class_declaration", "interface_declaration", "trait_declaration"}),
        calls={"function_call_expression": "function", "member_call_expression": "name"},
        bases=frozenset({"base_clause", "class_interface_clause"}),
        entry="language_php",
    ),
    Language(
        "tree_sitter_ruby",
        (".rb",),
        functions=frozenset({"method", "singleton_method"}),
        classes=frozenset({"class"}),
        calls={"call": "method"},
        bases=frozenset({"superclass"}),
        scopes={"module": "name"},
        own_methods=True,
    ),
)


@cache
def _by_suffix() -> dict[str, Language]:
    return {
        suffix: language
        for language in LANGUAGES
        if find_spec(language.package) is not None
        for suffix in language.suffixes
    }


def language_of(suffix: str) -> Language | None:
    """Return the language of a suffix such as ``.py``, if its package is installed."""
    return _by_suffix().get(suffix.lower())


@cache
def parser(language: Language) -> Parser:
    """Return the cached parser of a language, for one thread at a time."""
    import tree_sitter

    grammar = tree_sitter.Language(getattr(import_module(language.package), language.entry)())
    return tree_sitter.Parser(grammar)


@cache
def query(language: Language) -> QueryCursor:
    """Return a cached query for the relevant nodes, for one thread at a time."""
    import tree_sitter

    grammar = parser(language).language
    assert grammar is not None
    kinds = {*language.functions, *language.classes, *language.calls, *language.scopes, *_IMPORTS}
    known = {kind for kind in kinds if grammar.id_for_node_kind(kind, True)}
    pattern = " ".join(f"({kind})" for kind in sorted(known))
    return tree_sitter.QueryCursor(tree_sitter.Query(grammar, f"[{pattern}] @node"))
