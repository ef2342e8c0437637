"""Unrolled layers: chains of equal cells with shared weights.

h0 --cell--> h1 --cell--> h2 --cell--> h3        becomes      (x1, x2, x3), h0 -> LSTM -> h1, h2, h3
     x1           x2           x3
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..graph.walk import Node, node_label
from .builder import Builder, Step, Steps, emit_rows, emit_series, emit_state, in_order, is_whole, states_fit
from .cells import Cell, Matcher
from .scope import Scope, attribute_of
from .values import ACTIVATIONS, Values, with_shapes

_MOST_CANDIDATES = 120  # values behind the last product that may be the last state
LEAST_STEPS = 2
PRODUCTS = ("MatMul", "Gemm")


@dataclass(frozen=True)
class Chain:
    """Steps of an unrolled layer, in the order in which they run, and the products of each step's state."""

    cells: tuple[Cell, ...]
    products: tuple[list[Node], ...]


class Unrolled:
    """Finds chains in a graph; `reasons` say why products with shared weights are no chain."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._plain = Values(scope)
        self.reasons: list[str] = []
        self._users: dict[str, list[Node]] = {}
        self._index: dict[int, int] = {}
        for index, node in enumerate(scope.graph.node):
            self._index[id(node)] = index
            for name in node.needs:
                self._users.setdefault(name, []).append(node)
            if node.op_type == "Shape":  # each may depend on the ones before
                self._plain.moves.numbers(node.output[0])

    def chains(self) -> list[Chain]:
        """Return chains, the longest first; some may have common steps."""
        chains = [chain for group in self._groups() for chain in self._chains(group)]
        return sorted(chains, key=lambda chain: -len(chain.cells))

    def _groups(self) -> Iterator[list[Node]]:
        """Yield the products that share a constant right factor."""
        groups: dict[tuple[object, ...], list[Node]] = {}
        for node in self._scope.graph.node:
            if node.op_type in PRODUCTS and not node.domain and len(node.input) > 1:
                factor = self._scope.array(node.input[1])
                if factor is not None and factor.ndim == 2:
                    groups.setdefault((factor.shape, factor.dtype, factor[:1].tobytes()), []).append(node)
        yield from (group for group in groups.values() if len(group) >= LEAST_STEPS)

    def _chains(self, group: list[Node]) -> list[Chain]:
        factors = [self._plain.moves.parts(node.input[0]) for node in group]
        chains = []
        for column in zip(*factors, strict=False):  # of joined columns, some are the states
            products: dict[str, list[Node]] = {}
            for name, node in zip(column, group, strict=True):
                products.setdefault(self._plain.base(name), []).append(node)
            if len(products) >= LEAST_STEPS:
                chains += self._chains_of(products)
        return chains

    def _chains_of(self, products: Mapping[str, list[Node]]) -> list[Chain]:
        """Return the chains of states that these products take."""
        stops = set(products)
        for name in products:
            stops |= self._cell_states(name)
        values = self._values(stops, products)
        matcher = Matcher(values, stops)
        cells: dict[str, Cell] = {}
        local = self._scope.graph.local  # a step of the graph around this one stays there
        for name in (name for name in products if name in local):
            cell = matcher.match(name)
            if isinstance(cell, Cell) and cell.h is not None:
                cells[cell.h.name] = cell
            elif (node := self._scope.producer(name)) is not None and node.op_type == "Where":
                self.reasons.append("a mask keeps the state in some rows, and the steps are not in a Loop or Scan")
            elif isinstance(cell, str) and cell:
                self.reasons.append(cell)
        if not cells:
            return []
        starts = [h for h in cells if h not in {cell.new_h.name for cell in cells.values()}]
        return [chain for start in starts if (chain := self._chain(start, cells, products, matcher)) is not None]

    def _values(self, stops: set[str], states: Iterable[str]) -> Values:
        """Return values whose stops have shapes: those of earlier steps determine those of later ones."""
        ordered = [value for name in states for value in (*sorted(self._cell_states(name)), name)]
        return with_shapes(self._scope, stops, ordered)

    def _cell_states(self, name: str) -> set[str]:
        """Return the arguments of the functions of a product: of an LSTM, c and the argument of o."""
        node = self._scope.producer(name)
        if node is None or node.op_type != "Mul":
            return set()
        functions = (self._scope.producer(self._plain.base(source)) for source in node.input)
        return {
            self._plain.base(function.input[0])
            for function in functions
            if function is not None and function.op_type in ACTIVATIONS
        }

    def _chain(
        self, start: str, cells: dict[str, Cell], products: Mapping[str, list[Node]], matcher: Matcher
    ) -> Chain | None:
        steps: list[Cell] = []
        name = start
        while name in cells and self._follows(steps, cells[name]):
            steps.append(cells[name])
            name = steps[-1].new_h.name
        if name in cells:
            self.reasons.append("a step has other weights than the steps before, or other states")
        if not steps:
            return None
        last = self._last(steps, products, matcher)
        first = matcher.match(start) if start in self._scope.graph.local else None
        if isinstance(first, Cell) and first.h is None and self._follows([first], steps[0]):
            steps.insert(0, first)
        steps += last
        if len(steps) < LEAST_STEPS:
            return None
        return Chain(tuple(steps), tuple(products[cell.h.name] for cell in steps if cell.h and cell.h.name in products))

    def _last(self, steps: list[Cell], products: Mapping[str, list[Node]], matcher: Matcher) -> list[Cell]:
        """Return the step behind the last product: its state enters no product."""
        name = steps[-1].new_h.name
        kind = self._scope.producer(name)
        if name not in products or kind is None:
            return []
        for node in (node for product in products[name] for node in self._after(product)):
            if node.op_type == kind.op_type and node.output[0] not in products:
                cell = matcher.match(node.output[0])
                if not isinstance(cell, Cell) or cell.new_h.name != node.output[0]:  # or columns of another value
                    continue
                if self._follows(steps, cell):
                    return [cell]
        return []

    def _after(self, node: Node) -> list[Node]:
        """Return nodes that depend on a node, the nearest first."""
        queue, seen = [node], {id(node)}
        for current in queue:
            if len(queue) > _MOST_CANDIDATES:
                break
            for user in (user for name in current.output for user in self._users.get(name, ())):
                if id(user) not in seen:
                    seen.add(id(user))
                    queue.append(user)
        return queue[1:]

    def _follows(self, steps: Sequence[Cell], cell: Cell) -> bool:
        """Return whether a cell continues the steps: the same weights, and the states of the last step."""
        if not steps:
            return True
        last = steps[-1]
        if cell.h != last.new_h or cell.shape != last.shape or (cell.c is None) != (last.new_c is None):
            return False
        if cell.c is not None and cell.c != last.new_c:
            return False
        reference = steps[min(1, len(steps) - 1)]  # the first step may lack a gate
        return in_order(reference, cell) is not None


def emit_chain(builder: Builder, chain: Chain, done: dict[str, Step]) -> str:
    """Add the layer of a chain to a graph; return what was missing, or "".

    `done` are the states that layers compute already, by name; those of this layer are added.
    """
    cells, first = chain.cells, chain.cells[0]
    why = next(filter(None, (states_fit(builder.scope, cell) for cell in cells)), "")
    complete = next((cell for cell in cells if cell.is_complete), None)
    if why or complete is None:
        return why or "the chain has one step"
    inputs = [in_order(complete, cell) for cell in cells]
    if None in inputs:
        return "the steps have different weights"
    x, is_reverse = Steps(builder, done).input([refs for refs in inputs if refs is not None])
    product = chain.products[0][0]
    name = f"{product.name or product.output[0]}/{complete.operator}"
    origin = f"{len(cells)} unrolled steps from {node_label(product)}"
    states = [emit_state(builder, ref) for ref in (first.h, first.c)[: 2 if complete.operator == "LSTM" else 1]]
    known = [state for state in states if state is not None]
    if len(known) < len(states):
        return "the shape of an initial state is unknown"
    outputs = builder.layer(complete, x, known, name, origin, "reverse" if is_reverse else "forward")
    emit_results(builder, cells, outputs, is_reverse, done)
    return ""


def emit_results(
    builder: Builder, cells: Sequence[Cell], outputs: Sequence[str], is_reverse: bool, done: dict[str, Step]
) -> None:
    """Let the states of the steps be slices of Y, a Concat of all of them Y, and the last cell state Y_c."""
    count, last = len(cells), cells[-1]
    Y = builder.axes("Squeeze", outputs[0], [1])
    for k, cell in enumerate(cells):
        time = count - 1 - k if is_reverse else k
        done[cell.new_h.name] = Step(Y, time, count, cell.hidden_size)
        emit_rows(builder, builder.gather(Y, time), len(cell.shape), cell.new_h.name)
    for node in builder.scope.graph.node:
        if node.op_type == "Concat" and len(node.input) == count and not node.domain:
            _emit_joined(builder, node, last, done)
    if last.new_c is not None and is_whole(builder.scope, last.new_c):
        emit_rows(builder, builder.axes("Squeeze", outputs[2], [0]), len(last.shape), last.new_c.name)


def _emit_joined(builder: Builder, node: Node, cell: Cell, done: Mapping[str, Step]) -> None:
    """Let a Concat of all states be Y: of states at a new axis, or of states [1, N, H] at their first."""
    scope, rank, axis = builder.scope, len(cell.shape), int(attribute_of(node, "axis", 0))
    makers = [scope.producer(name) for name in node.input]
    names = list(node.input)
    is_new = all(maker is not None and maker.op_type == "Unsqueeze" for maker in makers)
    if is_new:
        axis %= rank + 1
        axes = {scope.integers(maker, "axes", 1) for maker in makers if maker is not None}
        names = [maker.input[0] for maker in makers if maker is not None]
        is_new = axes <= {(axis,), (axis - rank - 1,)} and axis < rank
    steps = [done.get(name) for name in names]
    first = steps[0]
    if first is None or any(step is None or step.Y != first.Y for step in steps):
        return
    times, order = [step.time for step in steps if step is not None], list(range(first.count))
    if times not in (order, order[::-1]) or not (is_new or (rank == 3 and axis == 0)):
        return
    if times != order and not builder.can_slice_at_run_time:
        return
    Y = first.Y if times == order else builder.reversed(first.Y)
    emit_series(builder, Y, rank if is_new else 2, axis, node.output[0])
