"""Checks of settings, made where a recipe is built and before anything heavy is imported.

Each raises `ValueError` with one sentence: the name, what was expected, what was given, and what to do about it.
"""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

LARGEST_COUNT = 2**31 - 1  # what fits wherever counts end up: lengths of tensors, ids, file formats
LARGEST_SEED = 2**63 - 1
LARGEST_NUMBER = sys.float_info.max
LONGEST_SHOWN = 80
MOST_DIGITS = 9  # of a number that is shown beside another
FEW = 5  # values that a message lists
MARK = "not given: "  # before the key of a setting that is left to the user, in the place of its value


def told_apart(value: float, bound: float, form: str = ".3f") -> tuple[str, str]:
    """Both with the digits of `form`, or with as many more as tell a value from a bound that it just missed."""
    forms = [f".{digits}{form[2]}" for digits in range(int(form[1]), MOST_DIGITS + 1)]
    shown = [(format(value, more), format(bound, more)) for more in forms]
    return next((pair for pair in shown if pair[0] != pair[1]), shown[-1])


def require_count(
    value: object, at_least: int, name: str, *, at_most: int = LARGEST_COUNT, hint: str = "", or_null: bool = False
) -> None:
    """A whole number, neither true nor 2.0."""
    if or_null and value is None:
        return
    if isinstance(value, int) and not isinstance(value, bool):
        if at_least <= value <= at_most:
            return
        bounds = f"of at least {at_least}" if value < at_least else f"from {at_least} to {at_most}"
    else:
        bounds = f"of at least {at_least}"
    raise ValueError(wrong(name, f"a whole number {bounds}{' or null' if or_null else ''}", value, hint))


def require_number(value: object, interval: str, name: str, *, hint: str = "", or_null: bool = False) -> None:
    """A finite number in an interval as mathematics writes it: "(0, 1]" holds 1 and not 0; "[0, inf)" has no end."""
    if or_null and value is None:
        return
    low, high = (float(bound) for bound in interval[1:-1].split(","))
    if isinstance(value, int | float) and not isinstance(value, bool):
        above = value > low or (interval[0] == "[" and value == low)
        below = value < high or (interval[-1] == "]" and value == high)
        if above and below and abs(value) <= LARGEST_NUMBER:
            return
    if high < math.inf:
        wanted = f"a number in {interval}"
    elif low > -math.inf:
        wanted = f"a number {'above' if interval[0] == '(' else 'of at least'} {low:g}"
    else:
        wanted = "a finite number"
    raise ValueError(wrong(name, f"{wanted}{' or null' if or_null else ''}", value, hint))


def require_choice(
    value: object, choices: Collection[str], name: str, *, hint: str = "", or_null: bool = False
) -> None:
    if or_null and value is None:
        return
    if not isinstance(value, str) or value not in choices:
        near = nearest(value, choices) if isinstance(value, str) else ""
        hint = " ".join(filter(None, [hint, near and f"Did you mean {near}?"]))
        raise ValueError(wrong(name, f"one of {', '.join(choices)}{' or null' if or_null else ''}", value, hint))


def nearest(word: str, known: Iterable[str]) -> str:
    """Those that a misspelt word may stand for: "a or b"; empty where none is like it."""
    return " or ".join(difflib.get_close_matches(word, list(known), n=3, cutoff=0.6))


def require_flag(value: object, name: str, *, or_null: bool = False) -> None:
    require_kind(value, bool, name, "true or false", or_null=or_null)


def require_text(value: object, name: str, *, hint: str = "", or_null: bool = False) -> None:
    """Text that is not empty. YAML reads 1234567 and 12e5 as numbers: such a name needs quotes."""
    if (or_null and value is None) or (isinstance(value, str) and value):
        return
    if not hint and isinstance(value, int | float) and not isinstance(value, bool):
        hint = "Put it in quotes."
    raise ValueError(wrong(name, f"text{' or null' if or_null else ''}", value, hint))


def as_sha256(value: object, name: str, *, or_null: bool = False) -> str:
    """A hash as files hold it, an end of line behind it: 64 hexadecimal digits, in small letters."""
    found = value.strip().lower() if isinstance(value, str) else ""
    if re.fullmatch("[0-9a-f]{64}", found) is None:
        raise ValueError(wrong(name, f"a SHA-256, of 64 hexadecimal digits{' or null' if or_null else ''}", value))
    return found


def require_variable_name(value: object, name: str) -> None:
    """Of an environment variable that holds a secret. What is none may be the secret itself: it is not repeated."""
    if isinstance(value, str) and _VARIABLE.fullmatch(value) and not (looks_like_secret(value) or _LUMP.search(value)):
        return
    raise ValueError(
        f"{name} must be the name of an environment variable (capital letters, digits and _); what was given is not "
        "one "
        "and is not repeated here, as it may be the secret itself. Put that into a variable, and name the variable."
    )


def require_kind(value: object, kind: Any, name: str, wanted: str, *, hint: str = "", or_null: bool = False) -> None:
    """An object of a class, or of one of a union of classes, that is called `wanted`."""
    if not (isinstance(value, kind) or (or_null and value is None)):
        raise ValueError(wrong(name, f"{wanted}{' or null' if or_null else ''}", value, hint))


def returned(value: T, maker: object, *kinds: str) -> T:
    """The value, where its class or a base of it has one of these names. Raises ValueError for anything else that a
    class of the user's own returned.

    maker: an object of that class.
    """
    if {known.__name__ for known in type(value).__mro__}.isdisjoint(kinds):
        name = f"{type(maker).__module__}.{type(maker).__qualname__}"
        wanted = " or ".join(kinds)
        raise ValueError(f"{name} must return {wanted}; it returned {type(value).__name__}. See docs/extending.md.")
    return value


def require_seed(value: object, name: str = "seed") -> None:
    require_count(value, 0, name, at_most=LARGEST_SEED)


def require_distinct(values: object, name: str, wanted: str, *, may_be_empty: bool = False) -> None:
    """A list in which nothing stands twice."""
    if isinstance(values, list | tuple) and (values or may_be_empty) and len(set(map(repr, values))) == len(values):
        return
    raise ValueError(wrong(name, f"a list of {wanted}, each once" if may_be_empty else wanted, values))


def wrong(name: str, wanted: str, value: object, hint: str = "") -> str:
    """The sentence: what was expected, what was given, what to do."""
    return f"{name} must be {wanted}; got {shown(value)}.{f' {hint}' if hint else ''}"


def shown(value: object) -> str:
    """A value as YAML would have it, cut where it is long; of other objects what they are."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        text = f"a mapping with the keys {', '.join(map(str, value))}" if value else "an empty mapping"
    elif isinstance(value, str | int | float):
        text = repr(value)
    elif isinstance(value, Sequence):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        text = f"{'an' if type(value).__name__[0] in 'AEIOU' else 'a'} {type(value).__name__}"
    text = hidden(text)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def first_few(values: Iterable[object]) -> str:
    """The first of many in a message: "a, b, c, d, e and 3 more"."""
    texts = [str(value) for value in values]
    more = f" and {len(texts) - FEW:,} more" if len(texts) > FEW else ""
    return ", ".join(texts[:FEW]) + more


# Checks that annotations declare --------------------------------------------------------------------------------------

T = TypeVar("T")
Check = Callable[..., Any]  # (value, name): raises ValueError; what it returns, if anything, takes the value's place


class Checked:
    """Base of dataclasses whose annotations say what a field may hold, which is checked where they are built.

    In `Annotated[int, Count(1)]` whatever stands beside the type is such a check, `require_text` as well as `Count(1)`.
    bool and Literal need none. Beside `| None` null passes, and checks are given `or_null=True` for their sentence.
    What hangs on several fields is code in `__post_init__`, which begins with that of `super()`.

    >>> @dataclass(frozen=True)
    ... class Draw(Checked):
    ...     number: Annotated[int, Count(1)]
    ...     share: Annotated[float | None, Number("(0, 1]")] = None
    >>> Draw(0)
    Traceback (most recent call last):
    ValueError: number must be a whole number of at least 1; got 0.

    Attributes:
        fields_called: How messages name a `{field}` of a class ({kind}).
    """

    fields_called: ClassVar[str] = "{field}"

    def __post_init__(self) -> None:
        for field, checks, more in _declared(type(self)):  # type: ignore[arg-type]  # a class has a hash
            name = self.fields_called.format(field=field, kind=type(self).__name__)
            for check in checks:
                value = getattr(self, field)
                if value is None and more:
                    continue
                if (final := check(value, name, **more)) is not None:
                    object.__setattr__(self, field, final)


@dataclass(frozen=True)
class Count:
    """As `require_count`."""

    at_least: int
    at_most: int = LARGEST_COUNT
    hint: str = ""

    def __call__(self, value: object, name: str, *, or_null: bool = False) -> None:
        require_count(value, self.at_least, name, at_most=self.at_most, hint=self.hint, or_null=or_null)


@dataclass(frozen=True)
class Number:
    """As `require_number`."""

    interval: str
    hint: str = ""

    def __call__(self, value: object, name: str, *, or_null: bool = False) -> None:
        require_number(value, self.interval, name, hint=self.hint, or_null=or_null)


@dataclass(frozen=True)
class OneOf:
    """As `require_choice`."""

    choices: Collection[str]

    def __call__(self, value: object, name: str, *, or_null: bool = False) -> None:
        require_choice(value, self.choices, name, or_null=or_null)


@dataclass(frozen=True)
class Distinct:
    """As `require_distinct`; each value passes a check besides."""

    wanted: str
    each: Check
    may_be_empty: bool = False

    def __call__(self, values: Sequence[Any], name: str) -> None:
        require_distinct(values, name, self.wanted, may_be_empty=self.may_be_empty)
        for value in values:
            self.each(value, f"each of {name}")


@cache
def _declared(kind: type) -> list[tuple[str, list[Check], dict[str, bool]]]:
    """The checked fields of a class, their checks, and what these are given besides."""
    hints = get_type_hints(kind, include_extras=True)
    found = [(item.name, *_checks_of(hints[item.name])) for item in fields(kind) if item.init]
    return [(name, checks, {"or_null": True} if or_null else {}) for name, checks, or_null in found if checks]


def _checks_of(hint: Any) -> tuple[list[Check], bool]:
    """What an annotation asks for, and whether null will do."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        checks, or_null = _checks_of(inner[0])
        return [*inner[1:], *checks], or_null
    if origin in (Union, UnionType):
        others = [item for item in inner if item is not NoneType]
        return (_checks_of(others[0])[0] if len(others) == 1 else []), NoneType in inner
    if origin is Literal:
        return [OneOf(inner)], False
    return [require_flag] if hint is bool else [], False


# Secrets --------------------------------------------------------------------------------------------------------------

ENVIRONMENT = "env:"  # before the name of an environment variable, in the place of its value
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_LUMP = re.compile(r"(?=[A-Z]*\d)[A-Z0-9]{20,}|[0-9A-F]{16,}")  # in the name of a variable: words are shorter
# By their beginnings, as the services give them out.
_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?!learn)(?=[\w-]*\d)[\w-]{12,}"  # OpenAI, Anthropic, OpenRouter, DeepSeek ...
    r"|(?:sk|rk|pk)_(?:live|test)_\w{8,}|sk_(?=\w*\d)\w{20,}"
    r"|hf_(?=\w*[A-Z])[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}"
    r"|gh[opusr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}"
    r"|(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{12,}"
    r"|AIza[\w-]{20,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}"
    r"|xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}"
    r"|(?:gsk|r8|npm|pypi|fw|pplx|csk|tvly|jina|xai|nvapi|dop_v1|tgp_v1|wandb_v1|dckr_pat)[_-]"
    r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?"
    r"|Bearer\s+(?!env:)[\w.~+/=-]{8,}|Basic\s+(?=\S*[a-z]\S*[A-Z0-9=])[\w+/=]{8,}"
    r")|-----BEGIN [A-Z ]*PRIVATE KEY",
    re.ASCII,
)
_SECRET_NAME = re.compile(
    r"(?:token|key|sig|signature|cookie|set-cookie)"
    r"|(?:.*[^a-z])?(?:api[_-]?keys?|(?:access|auth|bearer|refresh|session|security|hf|api|sas)[_-]?token"
    r"|secrets?(?:[_-]?(?:access[_-]?)?keys?)?|pass(?:word|wd|phrase)|credentials?|authorization"
    r"|(?:private|access|account|subscription|functions|signing|encryption)[_-]?key)",
    re.IGNORECASE,
)


def looks_like_secret(text: str) -> bool:
    """Whether a key, token or password of a known service stands in it."""
    return _SECRET.search(text) is not None


def names_a_secret(name: str) -> bool:
    """Whether the last part of a setting's, header's or field's name says that its value is a secret."""
    return _SECRET_NAME.fullmatch(name.rpartition(".")[2]) is not None


def refuse_secrets(overrides: Sequence[str]) -> None:
    """Raises ValueError for a secret among the words of a command, of which nothing is repeated but its name.

    A setting called by the name of a secret may hold none but the name of an environment variable, as env:NAME.
    """
    for number, override in enumerate(overrides, start=1):
        name, _, value = override.partition("=")
        name = name.lstrip("+~")
        is_option = name.startswith("-")  # --key FILE, --secret=FILE
        bare = value.strip("'\" ")
        is_given = bare not in ("", "null", "None", "???") and not bare.startswith(ENVIRONMENT)
        if looks_like_secret(override) or (is_given and names_a_secret(name) and not is_option):
            where = f"Word {number} of the command" if is_option or looks_like_secret(name) else name
            raise ValueError(
                f"{where} holds what looks like a secret, which is not repeated here. Nothing was run or written: put "
                "it into an environment variable, and name that in key_variable, or as env:NAME in extra_headers or "
                "extra_query of an endpoint."
            )
        if name.rpartition(".")[2] == "key_variable" and "${" not in value:
            for item in re.split(r"[\s,()\[\]'\"]+", value):  # of a sweep there may be several
                if item not in ("", "choice", "null", "???"):
                    require_variable_name(item, name)


def hidden(text: str) -> str:
    """With three stars in the place of what looks like a secret."""
    return _SECRET.sub("***", text)
