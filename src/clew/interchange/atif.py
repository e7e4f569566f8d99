"""A session as a trajectory of ATIF, the Agent Trajectory Interchange Format of Harbor.

Its steps are written as they are read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import IO

import msgspec

from clew.agents.source import open_main
from clew.convert.losses import Loss
from clew.interchange.steps import Steps
from clew.interchange.thread import SubagentThread, Thread
from clew.io.codec import dumps
from clew.model.json import JSON

FORMAT = "atif"
ATIF_VERSION = "ATIF-v1.8"
_METRIC_SUMS = ("prompt_tokens", "completion_tokens", "cached_tokens")


def write(thread: Thread, out: IO[bytes], *, clew_version: str = "") -> list[Loss]:
    """Write a thread and its sub-agents as one trajectory, with a line feed; returns what it does not hold."""
    if thread.agent.export_format == FORMAT:
        with open_main(thread.source) as stream:
            shutil.copyfileobj(stream, out)
        return []
    losses = _Trajectory(thread, f"{thread.agent.id}:{thread.id}", out, clew_version).write()
    out.write(b"\n")
    return losses


class _Trajectory:
    """Writes a thread and its sub-agents as one trajectory."""

    def __init__(self, thread: Thread, trajectory_id: str, out: IO[bytes], clew_version: str) -> None:
        self._thread, self._id, self._out, self._clew_version = thread, trajectory_id, out, clew_version
        self._sums: dict[str, float] = {}
        """Of the metrics of all steps, by their names."""
        self._cost_dollars: float | None = 0.0
        """Of the steps and all sub-agents; None once the cost of a call is unknown."""

    def write(self) -> list[Loss]:
        thread, write = self._thread, self._out.write
        subagents = list(thread.subagents())
        header = {"schema_version": ATIF_VERSION, "session_id": thread.id, "trajectory_id": self._id}
        write(dumps(header)[:-1] + b',"steps":[\n')
        steps = Steps(thread, subagents, child_id=self._child_id)
        for step in steps.read():
            self._add_metrics(step)
            for _ in step.get("extra", {}).get("unknown_blocks", ()):
                why = "`extra` of its step has it"
                thread.losses.add_note(step["extra"]["messages"][0], "a block of a kind that ATIF does not have", why)
            write((b",\n" if step["step_id"] > 1 else b"") + dumps(step))
        write(b"\n]")
        losses = thread.all_losses()
        if subagents:
            write(b',"subagent_trajectories":[\n')
            for number, child in enumerate(subagents):
                write(b",\n" if number else b"")
                losses += self._write_child(child)
            write(b"\n]")
        write(b"," + dumps(self._members_behind_steps(steps, losses))[1:])
        return losses

    def _write_child(self, child: SubagentThread) -> Iterator[Loss]:
        trajectory = _Trajectory(child.thread, self._child_id(child), self._out, self._clew_version)
        losses = trajectory.write()
        self._add_cost(trajectory._cost_dollars)
        for loss in losses:
            yield loss.in_subagent(child.id)

    def _child_id(self, child: SubagentThread) -> str:
        return f"{self._thread.agent.id}:{child.id}"

    def _add_metrics(self, step: dict[str, JSON]) -> None:
        metrics = step.get("metrics")
        if metrics is None:
            return
        for name in _METRIC_SUMS:
            if name in metrics:
                self._sums[name] = self._sums.get(name, 0) + metrics[name]
        self._add_cost(metrics.get("cost_usd"))

    def _add_cost(self, dollars: float | None) -> None:
        known = self._cost_dollars is not None and dollars is not None
        self._cost_dollars = (self._cost_dollars or 0) + (dollars or 0) if known else None

    def _members_behind_steps(self, steps: Steps, losses: list[Loss]) -> dict[str, JSON]:
        """The members of the document that are known once all steps were read."""
        thread, facts = self._thread, self._thread.facts
        agent: dict[str, JSON] = {"name": thread.agent.id, "version": facts.version or "unknown"}
        if facts.models:
            agent["model_name"] = facts.models.most_common(1)[0][0]
        if steps.tools:
            agent["tool_definitions"] = list(steps.tools.values())
        totals: dict[str, JSON] = {f"total_{name}": total for name, total in self._sums.items()}
        if self._cost_dollars:
            totals["total_cost_usd"] = round(self._cost_dollars, 9)
        session = {name: item for name, item in thread.session.items() if name not in ("id", "source", "extensions")}
        own: dict[str, JSON] = {"version": self._clew_version, "session": session}
        own["losses"] = msgspec.to_builtins(losses)
        if thread.source.mask is not None:
            own["redacted"] = thread.source.mask.stamp()
        return {
            "agent": agent,
            "final_metrics": {**totals, "total_steps": steps.count},
            "notes": _notes(losses),
            "extra": {"clew": own},
        }


def _notes(losses: list[Loss]) -> str:
    lines = ["Exported by clew. Costs are computed from list prices; total_cost_usd includes sub-agents."]
    for loss in losses:
        place = f"message {loss.message}: " if loss.message is not None else ""
        lines.append(f"{'Note' if loss.is_note else 'Lost'}: {place}{loss.what}: {loss.why}.")
    return "\n".join(lines)
