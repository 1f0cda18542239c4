"""Tables in the HTML output of a cell, as the progress of fastai and Hugging Face shows them."""

from __future__ import annotations

from html.parser import HTMLParser

MAX_ROWS = 20_000
MAX_CELLS = 200
MAX_CELL = 200


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self._is_inside = False
        self._rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables and self._rows < MAX_ROWS:
            self._rows += 1
            self.tables[-1].append([])
        elif tag in {"td", "th"} and self.tables and self.tables[-1]:
            self._is_inside = len(self.tables[-1][-1]) < MAX_CELLS
            if self._is_inside:
                self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "tr", "table"}:
            self._is_inside = False

    def handle_data(self, data: str) -> None:
        if self._is_inside and len(self.tables[-1][-1][-1]) < MAX_CELL:
            self.tables[-1][-1][-1] += data[:MAX_CELL]


def read_tables(html: str) -> list[list[list[str]]]:
    """Return the tables of a page as rows of cells."""
    parser = _Tables()
    try:
        parser.feed(html)
        parser.close()
    except (AssertionError, ValueError):  # html.parser gives up on some malformed declarations
        pass
    tables = [[[c.strip() for c in row] for row in table if row] for table in parser.tables]
    return [table for table in tables if len(table) > 1]
