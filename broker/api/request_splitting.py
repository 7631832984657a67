"""Long requests are handled in parts, so that other requests run in between.

Handlers whose answer is one result an element declare the arrays of request and response, as in
`handler(..., topics="responses")`. A request beyond PART_ELEMENTS becomes several of the same kind,
and their responses one: arrays are joined, of other fields the first error counts. Checks of
the whole request (such as repeated elements) apply to each part then. An ordinary request is one
part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from urteil.broker.base.offload import yield_items
from urteil.broker.wire.schema import Field, Struct

PART_ELEMENTS = 500


async def handle_in_parts(
    request: Any, fields: Mapping[str, str], handle: Callable[[Any], Awaitable[Any]]
) -> Any:
    """Handle a request, in parts if one of its arrays is long; `parts` maps the arrays of the
    request to those of the response."""
    array = next((field for field in fields if _is_long(getattr(request, field))), None)
    if array is None:
        return await handle(request)
    elements, results = getattr(request, array), fields[array]
    responses = []
    for part in _split_elements(elements):
        responses.append(await handle(replace(request, **{array: part})))
        await asyncio.sleep(0)
    return await _join_responses(responses, results)


async def _join_responses(responses: list[Any], results: str) -> Any:
    first = responses[0]
    joined: list[Any] = []
    async for response in yield_items(responses, 10):
        more = list(getattr(response, results))
        if joined and more and (joint := _join_results(joined[-1], more[0])):
            joined[-1] = joint
            del more[0]
        joined += more
    others = {
        spec.name: next(
            (value for response in responses if (value := getattr(response, spec.name))), None
        )
        for spec in first.FIELDS
        if not spec.is_array and not spec.is_struct
    }
    changed = {name: value for name, value in others.items() if value}
    return replace(first, **changed, **{results: joined})


def _join_results(before: Any, after: Any) -> Any:
    """Two results of parts of the same element, joined; None if they are of different elements."""
    nested = _nested_arrays(before)
    if len(nested) != 1:
        return None
    name = nested[0].name
    emptied = {name: ()}
    if replace(before, **emptied) != replace(after, **emptied):
        return None
    return replace(before, **{name: [*getattr(before, name), *getattr(after, name)]})


def _is_long(elements: Any) -> bool:
    if not elements:
        return False
    if len(elements) > PART_ELEMENTS:
        return True
    nested = _nested_arrays(elements[0])
    return bool(nested) and _weight(elements, nested) > PART_ELEMENTS


def _nested_arrays(element: Any) -> list[Field]:
    """The arrays within an element."""
    return [spec for spec in element.FIELDS if spec.is_array] if isinstance(element, Struct) else []


def _weight(elements: Any, nested: list[Field]) -> int:
    return len(elements) + sum(
        len(getattr(element, spec.name) or ()) for element in elements for spec in nested
    )


def _split_elements(elements: Any) -> Iterator[list[Any]]:
    nested = _nested_arrays(elements[0])
    part: list[Any] = []
    weight = 0
    for element in elements:
        for piece in _pieces(element, nested):
            part.append(piece)
            weight += _weight([piece], nested)
            if weight >= PART_ELEMENTS:
                yield part
                part, weight = [], 0
    if part:
        yield part


def _pieces(element: Any, nested: list[Field]) -> Iterator[Any]:
    """An element, or several with a part of its array each, if its only array is long."""
    long = [spec for spec in nested if len(getattr(element, spec.name) or ()) > PART_ELEMENTS]
    if len(long) != 1 or len(nested) != 1:
        yield element
        return
    name = long[0].name
    items = getattr(element, name)
    for start in range(0, len(items), PART_ELEMENTS):
        yield replace(element, **{name: items[start : start + PART_ELEMENTS]})


def is_long(response: Struct) -> bool:
    """Whether an array of the response is long."""
    return any(_is_long(getattr(response, spec.name)) for spec in _nested_arrays(response))
