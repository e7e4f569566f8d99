"""A session as steps, in the form of ATIF: what all formats of other tools are written from.

A step is a prompt, a note, or one reply of the model with its calls; results stand on the step of their call. A step is
kept in memory only while its calls wait for results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from clew.analysis.facts import SYNTHETIC_MODEL
from clew.convert.conversation import as_text, call_id
from clew.convert.losses import Loss, Losses
from clew.interchange.thread import ModelCall, SubagentThread, Thread
from clew.model.json import JSON
from clew.model.time import parse_time, spell_time
from clew.model.unit import Unit

MAX_HELD_STEPS = 1_000
"""The most steps that are kept in memory while calls wait for results. A result that comes later names no call."""
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_SOURCES = {"user": "user", "assistant": "agent", "system": "system"}
"""The source of a step, by the role of its message."""
_BLOCK_ORDER = {"thinking": 0, "text": 1, "image": 1, "document": 1, "tool_use": 2}
"""The order in which a step has the blocks of a reply."""
_KEPT_METADATA = ("is_meta", "is_compact_summary", "git_branch", "origin")
_NO_PLACE = "the format has no place for them"


class _Step:
    """A step that is not complete yet: more lines of its reply, or results, may follow."""

    def __init__(self, number: int, source: str) -> None:
        self.number, self.source = number, source
        self.reply: str | None = None
        """The id that all lines of a reply share."""
        self.fields: dict[str, JSON] = {}
        self.parts: list[JSON] = []
        self.reasoning: list[str] = []
        self.calls: list[JSON] = []
        self.results: list[JSON] = []
        self.extra: dict[str, JSON] = {}
        self.model_calls: list[ModelCall] = []
        self.block_order: list[int] = []
        """The numbers of its blocks in _BLOCK_ORDER, as they come."""

    def build(self) -> dict[str, JSON]:
        step: dict[str, JSON] = {"step_id": self.number, "source": self.source, **self.fields}
        step["message"] = _content(self.parts)
        if self.reasoning:
            step["reasoning_content"] = "\n\n".join(self.reasoning)
        if self.calls:
            step["tool_calls"] = self.calls
        if self.results:
            step["observation"] = {"results": self.results}
        if self.model_calls:
            step["metrics"] = _metrics(self.model_calls)
            step["llm_call_count"] = len(self.model_calls)
        if self.extra:
            step["extra"] = self.extra
        return step


def results_of(step: dict[str, JSON]) -> list[dict[str, JSON]]:
    """The results of the calls of a step."""
    results: list[dict[str, JSON]] = step.get("observation", {}).get("results", [])
    return results


class Steps:
    """The steps of a thread."""

    def __init__(
        self,
        thread: Thread,
        subagents: Iterable[SubagentThread] = (),
        *,
        child_id: Callable[[SubagentThread], str] = lambda child: child.id,
        has_tokens: bool = True,
    ) -> None:
        """`child_id` gives the ids of the trajectories of sub-agents.

        Without `has_tokens`, the format that is written has no place for token counts.
        """
        self._thread, self._child_id = thread, child_id
        self._subagents = {child.tool_id: child for child in subagents if child.tool_id}
        """By the call that started them."""
        self.tools: dict[str, JSON] = {}
        """Definitions of tools by their names, as far as the steps were read."""
        self._losses: Losses = thread.losses
        self.count = 0
        self._held: list[_Step] = []
        """Steps in order, of which one may wait for results."""
        self._waiting: dict[str, _Step] = {}
        """By the id of a call without a result: its step."""
        self._is_answered = False
        """Whether a result or a prompt came after the last reply."""
        self._system_prompt: str | None = None
        self._has_tokens = has_tokens
        self._counted: set[int] = set()
        """The indexes of the messages whose tokens are on a step."""
        self._records: Counter[str] = Counter()

    def read(self) -> Iterator[dict[str, JSON]]:
        """Every step in order; a session without messages has an empty one, because a trajectory has at least one."""
        for unit in self._thread.units():
            self._note_context(unit)
            if not unit.is_message:
                self._records[str(unit.value["kind"])] += 1
            elif unit.value["role"] == "assistant":
                yield from self._reply(unit)
            else:
                self._message(unit)
            if not self._waiting or len(self._held) > MAX_HELD_STEPS:
                yield from self._release(keep_last=self._held[-1:] if not self._waiting else [])
        yield from self._release()
        if not self.count:
            self._losses.add_note(None, "an empty session", "the format demands a step, so that it has an empty one")
            yield self._new_step("system", None).build()
        self._note_what_is_missing()

    def _note_what_is_missing(self) -> None:
        for call, child in self._subagents.items():
            what = f"which call started the sub-agent {child.id} ({call})"
            self._losses.append(
                Loss(None, what, "no step has this call", is_note=True, kind="which call started a sub-agent")
            )
        records = {kind: count for kind, count in self._records.items() if kind != "fragment"}
        if records and not self._thread.is_sidechain:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(records.items()))
            what, kind = f"records that are no messages ({kinds})", "a record that is no message"
            self._losses.append(Loss(None, what, _NO_PLACE, is_note=True, kind=kind, count=sum(records.values())))
        self._note_lost_tokens()

    def _note_lost_tokens(self) -> None:
        calls = self._thread.calls
        if not self._has_tokens:
            lost = {_NO_PLACE: sum(map(len, calls.values()))}
        else:
            uncounted = {index: len(calls[index]) for index in calls if index not in self._counted}
            lost = {"the session does not say which reply they are of": uncounted.pop(0, 0)}
            lost["the reply is copied or on another branch"] = sum(uncounted.values())
        kind = "the tokens of a call of a model"
        for why, count in lost.items():
            what = kind if count == 1 else f"the tokens of {count} calls of a model"
            if count:
                self._losses.append(Loss(None, what, why, is_note=True, kind=kind, count=count))

    def _release(self, keep_last: Iterable[_Step] = ()) -> Iterator[dict[str, JSON]]:
        """Finish all steps that are held, but for those to be kept."""
        kept = list(keep_last)
        for step in self._held[: len(self._held) - len(kept)]:
            self._waiting = {call: waiting for call, waiting in self._waiting.items() if waiting is not step}
            self._refer_to_subagents(step)
            if step.block_order != sorted(step.block_order):
                first = step.extra["messages"][0]
                self._losses.add_note(first, "the order of thinking, text and calls in a reply", "steps have no order")
            if self._has_tokens and len(step.model_calls) > 1:
                first = step.extra["messages"][0]
                self._losses.add_note(first, "the tokens of each call of a model in a reply", "a step has their sum")
            yield step.build()
        self._held = kept

    def _refer_to_subagents(self, step: _Step) -> None:
        for call in step.calls:
            child = self._subagents.pop(call["tool_call_id"], None)
            if child is None:
                continue
            reference = {"trajectory_id": self._child_id(child), "session_id": child.thread.id}
            result = next((each for each in step.results if each["source_call_id"] == call["tool_call_id"]), None)
            if result is None:
                result = {"source_call_id": call["tool_call_id"]}
                step.results.append(result)
            result["subagent_trajectory_ref"] = [reference]

    def _new_step(self, source: str, unit: Unit | None) -> _Step:
        self.count += 1
        step = _Step(self.count, source)
        if unit is not None:
            self._add_message(step, unit)
            self._held.append(step)
        return step

    def _add_message(self, step: _Step, unit: Unit) -> None:
        """Note which message a step holds, its time and what ATIF has no field for."""
        value, metadata = unit.value, unit.value.get("metadata") or {}
        if not unit.is_message:
            return
        step.extra.setdefault("messages", []).append(value["index"])
        if "timestamp" not in step.fields and (time := parse_time(value.get("timestamp"))) is not None:
            step.fields["timestamp"] = spell_time(time)
        step.extra.update({name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)})
        if self._thread.is_copied(unit):
            step.fields["is_copied_context"] = True

    def _note_context(self, unit: Unit) -> None:
        """Take the system prompt and the tools from the agent's own record."""
        context = self._thread.agent.model_context(unit.native) if not self._thread.is_sidechain else None
        if context is None:
            return
        for tool in context.tools:
            self.tools[str(tool["function"].get("name"))] = tool
        if context.system_prompt and context.system_prompt != self._system_prompt:
            self._system_prompt = context.system_prompt
            step = self._new_step("system", unit)
            step.parts.append({"type": "text", "text": context.system_prompt})
            step.extra["is_system_prompt"] = True
            if (time := parse_time(unit.value.get("timestamp"))) is not None:
                step.fields["timestamp"] = spell_time(time)

    # Replies

    def _reply(self, unit: Unit) -> Iterator[dict[str, JSON]]:
        metadata = unit.value.get("metadata") or {}
        reply = metadata.get("message_id")
        step = next((each for each in reversed(self._held) if each.source == "agent"), None)
        if step is None or reply is None or step.reply != reply:
            if self._is_answered:
                yield from self._release()
            step = self._new_step("agent", unit)
            step.reply, self._is_answered = reply, False
            if reply is not None:
                step.extra["reply_id"] = reply
        else:
            self._add_message(step, unit)
        self._describe_reply(step, unit, metadata)
        for number, block in enumerate(unit.value["content"]):
            self._reply_block(step, unit, number, block)

    def _describe_reply(self, step: _Step, unit: Unit, metadata: dict[str, JSON]) -> None:
        model = (metadata.get("model") or {}).get("name")
        is_synthetic = model == SYNTHETIC_MODEL
        if model and not is_synthetic:
            step.fields["model_name"] = model
        if level := (metadata.get("thinking") or {}).get("level"):
            step.fields["reasoning_effort"] = level
        if reason := (metadata.get("model") or {}).get("stop_reason"):
            step.extra["stop_reason"] = reason
        if is_synthetic:
            step.extra["is_written_by_client"] = True
        elif not step.fields.get("is_copied_context"):
            step.model_calls += self._thread.calls.get(unit.value["index"], ())
            self._counted.add(unit.value["index"])
        elif self._thread.is_in_history(unit):
            # Its tokens are not lost: they are those of another session.
            self._counted.add(unit.value["index"])

    def _reply_block(self, step: _Step, unit: Unit, number: int, block: dict[str, JSON]) -> None:
        kind, index = block["type"], unit.value["index"]
        step.block_order += [_BLOCK_ORDER[kind]] if kind in _BLOCK_ORDER else []
        match kind:
            case "thinking":
                if block["thinking"]:
                    step.reasoning.append(block["thinking"])
                if block.get("signature"):
                    step.extra.setdefault("thinking_signatures", []).append(block["signature"])
            case "tool_use":
                self._call(step, call_id(unit.value, number), block)
            case "tool_result":
                # Some agents store a result in the message of its call.
                self._result(step, block, unit)
            case _:
                self._part(step, block, index)

    def _call(self, step: _Step, identity: str, block: dict[str, JSON]) -> None:
        identity = block["tool_id"] or identity
        arguments, extra = block["input"], {}
        if not isinstance(arguments, dict):
            arguments, extra = ({} if arguments is None else {"input": arguments}), {"input_was_no_object": True}
        call = {"tool_call_id": identity, "function_name": block["tool_name"] or "unknown", "arguments": arguments}
        step.calls.append({**call, "extra": extra} if extra else call)
        self._waiting[identity] = step

    # Prompts, notes and results

    def _message(self, unit: Unit) -> None:
        """Results go to their calls; everything else of the message is a step of its own."""
        step: _Step | None = None
        for block in unit.value["content"]:
            if block["type"] == "tool_result" and self._waiting.get(block["tool_id"] or "") is not None:
                self._result(self._waiting[block["tool_id"]], block, unit)
                continue
            if step is None:
                source = "system" if block["type"] == "tool_result" else _SOURCES[unit.value["role"]]
                step = self._new_step(source, unit)
            if block["type"] == "tool_result":
                self._result(step, block, unit)
            elif block["type"] == "thinking":
                self._part(step, {"type": "text", "text": block["thinking"]}, unit.value["index"])
            else:
                self._part(step, block, unit.value["index"])
        if not unit.value["content"]:
            self._new_step(_SOURCES[unit.value["role"]], unit)
        self._is_answered = True

    def _result(self, step: _Step, block: dict[str, JSON], unit: Unit) -> None:
        """Add a result; one whose call is missing, has a result or is too long ago names no call."""
        call = block["tool_id"]
        is_answer = call is not None and self._waiting.get(call) is step
        result: dict[str, JSON] = {"source_call_id": call if is_answer else None}
        extra: dict[str, JSON] = {"message": unit.value["index"]}
        if is_answer:
            del self._waiting[call]
        else:
            extra |= {"tool_call_id": call, "tool_name": block.get("tool_name")}
            why = "its call is missing or not in the same turn"
            self._losses.add_note(unit.value["index"], "which call a result answers", why)
        if block.get("is_error"):
            extra["is_error"] = True
        if (time := parse_time(unit.value.get("timestamp"))) is not None:
            extra["timestamp"] = spell_time(time)
        content = self._output(block.get("output"), unit.value["index"])
        step.results.append({**result, "content": content, "extra": extra})

    def _output(self, output: JSON, index: int) -> JSON:
        if output is None or isinstance(output, str):
            return output or ""
        if not isinstance(output, list):
            return as_text(output)
        return _content([part for block in output for part in self._parts(block, index)])

    def _part(self, step: _Step, block: dict[str, JSON], index: int) -> None:
        if block["type"] == "unknown":
            step.extra.setdefault("unknown_blocks", []).append(block["value"])
        else:
            step.parts += self._parts(block, index)

    def _parts(self, block: JSON, index: int) -> list[JSON]:
        """The parts for a block of text, a picture or a document."""
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            return [{"type": "text", "text": block["text"]}]
        if kind == "image":
            return [self._image(block, index)]
        if kind == "document" and block.get("encoding") == "text":
            return [{"type": "text", "text": as_text(block.get("document") or "")}]
        if kind == "document":
            self._losses.add(index, "an attached document", "the format has no documents")
            return [{"type": "text", "text": f"[document: {block.get('title') or block.get('media_type') or ''}]"}]
        return [{"type": "text", "text": as_text(block.get("value", block) if kind else block)}]

    def _image(self, block: dict[str, JSON], index: int) -> dict[str, JSON]:
        media_type, image = block.get("media_type"), block.get("image")
        media_type = "image/jpeg" if media_type == "image/jpg" else media_type
        if not image or media_type not in _IMAGE_TYPES:
            why = "the session does not contain its bytes" if not image else f"the format does not take {media_type}"
            self._losses.add(index, "a picture", why)
            return {"type": "text", "text": f"[image: {media_type or 'unknown type'}]"}
        path = image if block.get("encoding") == "url" else f"data:{media_type};base64,{image}"
        return {"type": "image", "source": {"media_type": media_type, "path": path}}


def _content(parts: list[JSON]) -> JSON:
    """The parts of a message: a single text is a string."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _metrics(calls: list[ModelCall]) -> dict[str, JSON]:
    """The sum over the calls of a step; a count that no call records is left out."""
    metrics: dict[str, JSON] = {}
    prompts = [call.prompt_tokens for call in calls if call.prompt_tokens is not None]
    if prompts:
        metrics["prompt_tokens"] = sum(prompts)
    counts: Counter[str] = Counter()
    for call in calls:
        counts.update(call.counts)
    for name, field in (("completion_tokens", "output_tokens"), ("cached_tokens", "cache_read_tokens")):
        if field in counts:
            metrics[name] = counts[field]
    costs = [call.cost_dollars for call in calls if call.cost_dollars is not None]
    if len(costs) == len(calls):
        metrics["cost_usd"] = round(sum(costs), 9)
    return {**metrics, "extra": dict(counts)}
