"""The text of a CEL expression as tokens and as a tree, to reason about a selector without running it.

The engine parses for itself; what is read here must never be read differently. So this reads a subset: anything unusual
(messages, `.rooted` names) is Unreadable, and a string with escapes is a literal of unknown value.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

# resource.k8s.io/v1 CELSelectorExpressionMaxLength: the API server stores no longer one.
MAX_LENGTH = 10 * 1024
# cel-cpp gives up at 32 as well (measured); the bound keeps our own recursion small.
MAX_DEPTH = 32

_TOKEN = re.compile(
    r"""
    (?P<space> [\t\n\f\r\ ]+ | //[^\n]* )
  | (?P<string> (?P<prefix>[bBrR]{0,2}) (?:
        \"{3} (?P<long2> (?:[^\\]|\\.)*? ) \"{3}  | '{3} (?P<long1> (?:[^\\]|\\.)*? ) '{3}
      | \"    (?P<short2> (?:[^"\\\r\n]|\\.)* ) \"  | '   (?P<short1> (?:[^'\\\r\n]|\\.)* ) ' ) )
  | (?P<number> 0x[0-9a-fA-F]+[uU]? | (?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[uU]? )
  | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<symbol> && | \|\| | [=!<>]= | [-+*/%<>!?:.,()\[\]{}] )
    """,
    re.VERBOSE | re.DOTALL,
)
# The engine cuts strings at NUL.
_NUL = re.compile(r"\0|\\(?:000|[xX]00|u0000|U00000000)")

_LOGICAL = {"||": 1, "&&": 2}
_PRECEDENCE = _LOGICAL | {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_PRECEDENCE |= dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3)


class Unreadable(ValueError):
    """Text that is no CEL, or CEL of a kind not read here."""


@dataclass(frozen=True, slots=True)
class Token:
    """One lexical element. `value` is what a string literal means, if it is plain to see."""

    kind: str
    text: str
    value: str | None = None


class Form(Enum):
    """What a node of the tree is; in brackets what its `text` and `parts` are."""

    STRING = auto()  # (its value)
    LITERAL = auto()  # any other
    NAME = auto()  # (the name)
    FIELD = auto()  # (the name; operand)
    OPTIONAL_FIELD = auto()  # a.?b
    INDEX = auto()  # (operand, key)
    OPTIONAL_INDEX = auto()  # a[?b]
    CALL = auto()  # (function; arguments)
    METHOD = auto()  # (function; target and arguments)
    OPERATOR = auto()  # (the operator, `?:` for the conditional; operands)
    COLLECTION = auto()  # list or map (everything in it)


@dataclass(frozen=True, slots=True)
class Node:
    """An expression and the token that names it."""

    form: Form
    text: str
    parts: tuple["Node", ...]
    token: int
    depth: int

    def walk(self) -> Iterator["Node"]:
        """This node and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


def tokens(text: str) -> list[Token]:
    """The tokens of an expression, without space and comments; Unreadable for what has none."""
    if len(text.encode()) > MAX_LENGTH or _NUL.search(text):
        raise Unreadable(f"longer than {MAX_LENGTH} bytes, or with NUL")
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise Unreadable(f"no token at {position}")
        position = match.end()
        kind = match.lastgroup if match["string"] is None else "string"
        if kind == "string":
            content = match["long2"] or match["long1"] or match["short2"] or match["short1"] or ""
            prefix = match["prefix"].lower()
            if "r" in prefix and re.search(r"\\['\"]", content):
                raise Unreadable("a raw literal with a backslash before a quote ends earlier in CEL")
            plain = "b" not in prefix and ("r" in prefix or "\\" not in content)
            found.append(Token("string", match[0], content if plain else None))
        elif kind != "space":
            found.append(Token(kind or "", match[0]))
    return found


def parse(source: list[Token]) -> Node:
    """The tree of the tokens; Unreadable when there is none, or it is deeper than MAX_DEPTH."""
    parser = _Parser(source)
    root = parser.expression()
    if parser.position != len(source):
        raise Unreadable(f"surplus token {source[parser.position].text!r}")
    return root


class _Parser:
    """Precedence climbing over https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax."""

    def __init__(self, source: list[Token]) -> None:
        self.source = [*source, Token("end", "")]
        self.position = 0
        self.nesting = 0

    def expression(self) -> Node:
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep")
        node = self._binary(0)
        if self._taken("?"):
            then = self._binary(0)
            self._expect(":")
            node = self._node(Form.OPERATOR, "?:", node, then, self.expression())
        self.nesting -= 1
        return node

    def _binary(self, floor: int) -> Node:
        left, joined = self._unary(), ""
        while (precedence := _PRECEDENCE.get(self._operator(), 0)) > floor:
            operator = self._operator()
            self.position += 1
            right = self._binary(precedence)
            # Chains of && and || are flat: they are long in practice, and neither engine nests them.
            flat = left.parts if operator == joined and operator in _LOGICAL else (left,)
            left, joined = self._node(Form.OPERATOR, operator, *flat, right), operator
        return left

    def _unary(self) -> Node:
        signs = []
        while self._operator() in ("!", "-"):
            signs.append(self._operator())
            self.position += 1
        node = self._postfix(self._primary())
        for sign in reversed(signs):
            node = self._node(Form.OPERATOR, sign, node)
        return node

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._taken("."):
                optional = self._taken("?")
                at, name = self.position, self._name()
                if not optional and self._taken("("):
                    node = self._node(Form.METHOD, name, node, *self._list(")"), at=at)
                else:
                    node = self._node(Form.OPTIONAL_FIELD if optional else Form.FIELD, name, node, at=at)
            elif self._taken("["):
                form = Form.OPTIONAL_INDEX if self._taken("?") else Form.INDEX
                node = self._node(form, "", node, self.expression())
                self._expect("]")
            else:
                return node

    def _primary(self) -> Node:
        at, token = self.position, self.source[self.position]
        self.position += 1
        if token.kind == "string" and token.value is not None:
            return self._node(Form.STRING, token.value, at=at)
        if token.kind in ("string", "number") or token.text in ("true", "false", "null"):
            return self._node(Form.LITERAL, token.text, at=at)
        if token.kind == "name" and token.text != "in":
            if self._taken("("):
                return self._node(Form.CALL, token.text, *self._list(")"), at=at)
            return self._node(Form.NAME, token.text, at=at)
        if token.text == "(":
            node = self.expression()
            self._expect(")")
            return node
        if token.text in ("[", "{"):
            return self._node(Form.COLLECTION, token.text, *self._list("]" if token.text == "[" else "}"), at=at)
        raise Unreadable(f"unexpected {token.text or 'end'!r}")

    def _list(self, end: str) -> list[Node]:
        """Arguments, elements or entries up to `end`; keys and values of a map follow each other."""
        items = []
        while not self._taken(end):
            if end != ")":
                self._taken("?")
            items.append(self.expression())
            if end == "}":
                self._expect(":")
                items.append(self.expression())
            if not self._taken(","):
                self._expect(end)
                break
        return items

    def _node(self, form: Form, text: str, *parts: Node, at: int = -1) -> Node:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep")
        return Node(form, text, parts, at, depth)

    def _operator(self) -> str:
        token = self.source[self.position]
        return token.text if token.kind == "symbol" or token.text == "in" else ""

    def _taken(self, symbol: str) -> bool:
        token = self.source[self.position]
        taken = token.kind == "symbol" and token.text == symbol
        self.position += taken
        return taken

    def _expect(self, symbol: str) -> None:
        if not self._taken(symbol):
            raise Unreadable(f"{symbol!r} expected, {self.source[self.position].text!r} found")

    def _name(self) -> str:
        token = self.source[self.position]
        if token.kind != "name":
            raise Unreadable(f"name expected, {token.text!r} found")
        self.position += 1
        return token.text
