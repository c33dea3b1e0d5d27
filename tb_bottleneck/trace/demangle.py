"""Decodes mangled C++ names of kernels.

CUPTI leaves long names mangled, and Kineto on Windows leaves all names mangled. Reference: Itanium C++ ABI, 5.1
(External names), https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling. Substitutions such as `S0_` repeat an
earlier part of the name. They are left out, because a malicious name could grow exponentially. The result is for
display and for pattern matching; it is not the exact declaration.
"""

import re
from collections.abc import Callable

_BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}
_BUILTIN_D = {"h": "_Float16", "n": "nullptr_t", "a": "auto", "i": "char32_t", "s": "char16_t", "u": "char8_t"}
_STANDARD = {"t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string"}
_SUFFIX = {"P": "*", "R": "&", "O": "&&", "K": " const", "V": "", "r": "", "C": "", "G": ""}
_LENGTH = re.compile(r"\d{1,4}")
_SEQUENCE = re.compile(r"[0-9A-Z]*_")
_NUMBER = re.compile(r"n?\d*")
_ANONYMOUS = "(anonymous namespace)"


class _UnknownError(Exception):
    """Raised if a name ends early, or has a construct that this parser does not know."""


def demangled(name: str) -> str:
    """Returns the decoded name of the function with its template arguments, or `name` itself if it is not mangled.

    If `name` was cut off or cannot be decoded to its end, returns the decoded part, followed by "...".
    """
    if not name.startswith("_Z"):
        return name
    parser = _Parser(name)
    try:
        parser.name()
    except (_UnknownError, LookupError, RecursionError):
        parser.parts.append("...")
    text = "".join(parser.parts)
    return text if any(letter.isalpha() for letter in text) else name


class _Parser:
    """A recursive-descent parser. The methods read `text` from position `at` on and append decoded text to `parts`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 2
        self.parts: list[str] = []

    def _taken(self, start: str) -> bool:
        found = self.text.startswith(start, self.at)
        self.at += len(start) * found
        return found

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if not found:
            raise _UnknownError
        self.at = found.end()
        return found[0]

    def name(self) -> None:
        """Decodes the name of a function, without the types of its arguments."""
        if self._taken("N"):
            while self.text[self.at] in "rVKRO":
                self.at += 1
            self._joined(self._prefix_part)
        elif self._taken("Z"):
            self._local_name()
        else:
            self._prefix_part()
            if self._taken("I"):
                self._arguments()

    def _local_name(self) -> None:
        """Decodes an entity inside a function, such as a lambda or a local class."""
        self.name()
        while not self._taken("E"):
            self._skipped_type()
        self.parts.append("::")
        if self._taken("s"):
            self.parts.append("string")
        else:
            if self._taken("d"):
                self._match(_SEQUENCE)
            self.name()
        if self._taken("_"):
            self._match(_NUMBER)

    def _joined(self, part: Callable[[], None]) -> None:
        """Decodes the components of a nested name up to the closing `E`, and puts "::" between components with a text.

        `part` decodes one component.
        """
        first = len(self.parts)
        while not self._taken("E"):
            before = len(self.parts)
            if self._taken("I"):
                self._arguments()
                continue
            if before > first:
                self.parts.append("::")
            part()
            if before > first and len(self.parts) == before + 1:
                self.parts.pop()

    def _prefix_part(self) -> None:
        """Decodes one component of a nested name, such as a namespace."""
        letter = self.text[self.at]
        if letter.isdigit() or letter == "L":
            self.at += letter == "L"
            self._source_name()
        elif letter == "S":
            self._substitution()
            if self.text[self.at - 1] == "t" and (self.text[self.at].isdigit()):
                self.parts.append("::")
                self._source_name()
        elif letter == "T":
            self._sequence()
        elif letter == "U":
            self._unnamed()
        elif letter == "M":
            self.at += 1
        elif self.text[self.at : self.at + 2] == "cl":
            self.at += 2
            self.parts.append("operator()")
        elif letter in "CD":
            self.at += 2
        else:
            raise _UnknownError

    def _source_name(self) -> None:
        length = int(self._match(_LENGTH))
        text = self.text[self.at : self.at + length]
        self.at += length
        self.parts.append(_ANONYMOUS if text.startswith("_GLOBAL__N_") else text)
        if len(text) < length:
            raise _UnknownError
        while self._taken("B"):
            self.at += int(self._match(_LENGTH))

    def _sequence(self) -> None:
        """Skips the number of a substitution or of a template parameter: `S1_`, `T_`."""
        self.at += 1
        self._match(_SEQUENCE)

    def _substitution(self) -> None:
        standard = _STANDARD.get(self.text[self.at + 1])
        if standard:
            self.at += 2
            self.parts.append(standard)
        else:
            self._sequence()

    def _unnamed(self) -> None:
        if self._taken("Ul"):
            while not self._taken("E"):
                self._skipped_type()
            self.parts.append("{lambda}")
        elif self._taken("Ut"):
            self.parts.append("{unnamed}")
        else:
            raise _UnknownError
        self._match(_SEQUENCE)

    def _arguments(self) -> None:
        """Decodes the arguments of a template. Arguments without a text, such as substitutions, are left out."""
        self.parts.append("<")
        self._listed(self._argument)
        self.parts.append(">")

    def _listed(self, item: Callable[[], None]) -> None:
        first = len(self.parts)
        while not self._taken("E"):
            before = len(self.parts)
            self.parts.append(", " if before > first else "")
            item()
            if len(self.parts) == before + 1:
                self.parts.pop()

    def _argument(self) -> None:
        if self._taken("L"):
            self._literal()
        elif self._taken("J"):
            self._listed(self._argument)
        else:
            self._type()

    def _literal(self) -> None:
        if self._taken("_Z"):
            self.name()
            while not self._taken("E"):
                self._skipped_type()
            return
        first = len(self.parts)
        self._type()
        is_bool = "".join(self.parts[first:]) == "bool"
        del self.parts[first:]
        end = self.text.find("E", self.at)
        if end < 0:
            raise _UnknownError
        value = self.text[self.at : end].replace("n", "-")
        self.at = end + 1
        self.parts.append({"0": "false", "1": "true"}.get(value, value) if is_bool else value)

    def _skipped_type(self) -> None:
        first = len(self.parts)
        self._type()
        del self.parts[first:]

    def _type(self) -> None:
        letter = self.text[self.at]
        if letter in _SUFFIX:
            self.at += 1
            before = len(self.parts)
            self._type()
            if len(self.parts) > before:
                self.parts.append(_SUFFIX[letter])
        elif letter in _BUILTIN:
            self.at += 1
            self.parts.append(_BUILTIN[letter])
        elif letter == "D":
            self._builtin_d()
        elif letter == "F":
            self.at += 1
            self._taken("Y")
            self._type()
            first = len(self.parts)
            self._listed(self._type)
            self.parts.insert(first, "(")
            self.parts.append(")")
        elif letter == "A":
            self.at += 1
            self.parts.append(f"[{self._match(_NUMBER)}]")
            self._taken("_")
            self._type()
        elif letter == "M":
            self.at += 1
            self._type()
            self._type()
        elif letter in "SNZTU" or letter.isdigit():
            self.name()
        else:
            raise _UnknownError

    def _builtin_d(self) -> None:
        if self._taken("Dp"):
            self._type()
        elif self._taken("DF16b"):
            self.parts.append("bfloat16")
        elif self._taken("DF"):
            self.parts.append(f"_Float{self._match(_NUMBER)}")
            self._taken("_")
        elif self._taken("Dv"):
            self.parts.append(f"vector{self._match(_NUMBER)} of ")
            self._taken("_")
            self._type()
        else:
            self.parts.append(_BUILTIN_D[self.text[self.at + 1]])
            self.at += 2
