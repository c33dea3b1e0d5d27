"""The process groups of one rank: those in the header, and those that the collectives name."""

import re

from tb_bottleneck.trace.columns.messages import Message
from tb_bottleneck.trace.header import MAX_GROUPS, MAX_RANKS, Header, ProcessGroup

UNNAMED = ProcessGroup("", "", (), 0)
"""The group of collectives that do not name theirs."""

_RANK = re.compile(r"\d{1,8}", re.ASCII)


class GroupTable:
    """Process groups by name, in order of their first use."""

    def __init__(self, header: Header) -> None:
        self._header = {group.name: group for group in header.groups}
        self._row_of: dict[str, int] = {}
        self._groups: list[ProcessGroup] = []

    def unnamed(self) -> int:
        """Returns the row of the group of collectives that do not name theirs."""
        return self._row("", UNNAMED)

    def row_of(self, message: Message) -> int:
        """Returns the row of a message's group. The header's list of ranks is complete, the message's may be cut."""
        if not message.group and not message.ranks:
            return self.unnamed()
        key = message.group or message.ranks
        if key in self._row_of:
            return self._row_of[key]
        known = self._header.get(message.group)
        ranks = known.ranks if known is not None and known.ranks else ranks_in(message.ranks)
        size = message.size if message.size > 0 else known.size if known is not None else len(ranks)
        description = message.description or (known.description if known is not None else "")
        return self._row(key, ProcessGroup(message.group[:100], description[:100], ranks, size))

    def groups(self) -> tuple[ProcessGroup, ...]:
        """Returns the groups in use."""
        return tuple(self._groups)

    def _row(self, key: str, group: ProcessGroup) -> int:
        if key not in self._row_of and len(self._groups) >= MAX_GROUPS:
            return self.unnamed() if "" in self._row_of else 0
        row = self._row_of.setdefault(key, len(self._groups))
        if row == len(self._groups):
            self._groups.append(group)
        return row


def ranks_in(text: str) -> tuple[int, ...]:
    """Returns the ranks of a list as text, or nothing if it is cut.

    Kineto cuts lists of over 30 ranks and appends "..." (libkineto/src/output_json.cpp, kTruncatLength).
    """
    return () if "..." in text else tuple(int(rank) for rank in _RANK.findall(text)[:MAX_RANKS])
