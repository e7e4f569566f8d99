"""Writes a demo session as Codex 0.118 does: one rollout file, and one for each sub-agent."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta

from clew.demo.records import Record, json_lines, json_text, timestamp
from clew.demo.sessions import (
    Change,
    Command,
    Plan,
    Read,
    Session,
    Step,
    SubagentTask,
    Thought,
    TokenCounter,
    Turn,
    Work,
    unified_diff,
)

THREAD_NAMES = "session_index.jsonl"
CONTEXT_WINDOW = 258_400
SUBAGENT_MODEL = "gpt-5.1-codex-mini"
NICKNAMES = ("Kepler", "Halley", "Messier", "Bessel")


def codex_files(session: Session) -> Iterator[tuple[str, bytes]]:
    """The files of a session below ~/.codex, by path; of the names of threads, the line of this session."""
    rollout = _Rollout(session, session.model, session.started)
    for turn in session.turns:
        rollout.write_turn(turn)
    yield from rollout.files()
    if not session.is_older:
        name = {"id": rollout.thread_id, "thread_name": session.title, "updated_at": timestamp(session.ended)}
        yield THREAD_NAMES, json_lines([name])


class _Rollout:
    def __init__(self, session: Session, model: str, started: datetime, parent: Record | None = None) -> None:
        self._session, self._model, self._started = session, model, started - timedelta(seconds=30)
        self._tokens = TokenCounter(session.random)
        self._totals = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0}
        self._records: list[Record] = []
        self._subagents: list[_Rollout] = []
        self.thread_id = _time_ordered_id(session, started)
        self._write_meta(parent)

    def files(self) -> Iterator[tuple[str, bytes]]:
        time = self._started
        name = f"rollout-{time:%Y-%m-%dT%H-%M-%S}-{self.thread_id}.jsonl"
        yield f"sessions/{time:%Y/%m/%d}/{name}", json_lines(self._records)
        for subagent in self._subagents:
            yield from subagent.files()

    def write_turn(self, turn: Turn) -> None:
        if turn.summary is not None:
            self._write_compaction(turn)
        turn_id = _time_ordered_id(self._session, turn.asked)
        self._event(
            turn.asked,
            "task_started",
            turn_id=turn_id,
            model_context_window=CONTEXT_WINDOW,
            collaboration_mode_kind="default",
        )
        self._write("turn_context", turn.asked, self._turn_context(turn_id, turn.asked))
        self._write_prompt(turn)
        for step in turn.steps:
            self._write_step(step, turn_id)
        assert turn.answer is not None, "only Claude Code has a running session"
        self._write_text(turn.answered, turn.answer, "final_answer")
        self._write_usage(turn.answered, turn.answer)
        self._event(turn.answered, "task_complete", turn_id=turn_id, last_agent_message=turn.answer)
        if turn.is_rewound:
            self._event(turn.answered + timedelta(seconds=20), "thread_rolled_back", num_turns=1)

    def _write(self, kind: str, time: datetime, payload: Record) -> None:
        self._records.append({"timestamp": timestamp(time), "type": kind, "payload": payload})

    def _item(self, time: datetime, kind: str, **fields: object) -> None:
        self._write("response_item", time, {"type": kind, **fields})

    def _event(self, time: datetime, kind: str, **fields: object) -> None:
        self._write("event_msg", time, {"type": kind, **fields})

    def _write_meta(self, parent: Record | None) -> None:
        session = self._session
        meta: Record = {
            "id": self.thread_id,
            "timestamp": timestamp(self._started),
            "cwd": session.folder,
            "originator": "codex_cli_rs",
            "cli_version": "0.118.0",
            "source": "cli" if parent is None else {"subagent": {"thread_spawn": parent}},
            "model_provider": "openai",
            "base_instructions": {"text": "You are a coding agent running in a terminal."},
        }
        if parent is not None:
            meta |= {key: parent[key] for key in ("agent_nickname", "agent_role")}
        meta["git"] = {
            "commit_hash": session.random.randbytes(20).hex(),
            "branch": session.branch,
            "repository_url": f"https://example.org/ada/{session.project}.git",
        }
        self._write("session_meta", self._started + timedelta(seconds=1), meta)
        environment = (
            f"<environment_context>\n  <cwd>{session.folder}</cwd>\n  <shell>zsh</shell>\n</environment_context>"
        )
        content = [{"type": "input_text", "text": environment}]
        self._item(self._started + timedelta(seconds=2), "message", role="user", content=content)

    def _turn_context(self, turn_id: str, time: datetime) -> Record:
        return {
            "turn_id": turn_id,
            "cwd": self._session.folder,
            "current_date": f"{time:%Y-%m-%d}",
            "timezone": "Europe/Berlin",
            "approval_policy": "on-request",
            "sandbox_policy": {
                "type": "workspace-write",
                "network_access": False,
                "exclude_tmpdir_env_var": False,
                "exclude_slash_tmp": False,
            },
            "model": self._model,
            "effort": "medium",
            "summary": "auto",
        }

    def _write_prompt(self, turn: Turn) -> None:
        content: list[Record] = [{"type": "input_text", "text": turn.prompt}]
        images: list[str] = []
        if turn.picture is not None:
            images.append(f"data:image/png;base64,{base64.b64encode(turn.picture).decode()}")
            content.append({"type": "input_image", "image_url": images[0]})
        self._item(turn.asked, "message", role="user", content=content)
        self._event(turn.asked, "user_message", message=turn.prompt, images=images, local_images=[], text_elements=[])

    def _write_text(self, time: datetime, text: str, phase: str) -> None:
        self._event(time, "agent_message", message=text, phase=phase)
        content = [{"type": "output_text", "text": text}]
        self._item(time, "message", role="assistant", content=content, phase=phase)

    def _write_step(self, step: Step, turn_id: str) -> None:
        work = step.work
        if isinstance(work, Thought):
            self._event(step.begun, "agent_reasoning", text=work.text)
            self._item(
                step.begun,
                "reasoning",
                summary=[{"type": "summary_text", "text": work.text}],
                content=None,
                encrypted_content=f"gAAAAABo-demo-{self._session.random.randbytes(24).hex()}",
            )
            return
        if step.remark:
            self._write_text(step.begun, step.remark, "commentary")
        call_id = f"call_{self._session.random.randbytes(12).hex()}"
        if isinstance(work, Change):
            self._write_patch(work, step, call_id, turn_id)
        elif isinstance(work, SubagentTask):
            self._write_subagent(work, step, call_id)
        else:
            name, arguments, output = self._call(work, step)
            self._item(step.begun, "function_call", name=name, arguments=json_text(arguments), call_id=call_id)
            self._item(step.done, "function_call_output", call_id=call_id, output=output)
        # The values alone: counts must not change with the names of classes and fields.
        self._write_usage(step.done, "".join(map(str, work)))

    def _call(self, work: Work, step: Step) -> tuple[str, Record, str]:
        """Name, arguments and output of the function that does the work."""
        if isinstance(work, Plan):
            items = [{"step": subject, "status": status} for subject, status in work.items]
            return "update_plan", {"explanation": None, "plan": items}, "Plan updated"
        if isinstance(work, Read):
            work = Command(f"cat {work.path}", work.content)
        assert isinstance(work, Command)
        seconds = (step.done - step.begun).total_seconds()
        output = (
            f"Chunk ID: {self._session.random.randbytes(3).hex()}\nWall time: {seconds:.4f} seconds\n"
            f"Process exited with code {int(work.is_failure)}\nOriginal token count: {len(work.output) // 4}\n"
            f"Output:\n{work.output}\n"
        )
        return "exec_command", {"cmd": work.command, "workdir": self._session.folder}, output

    def _write_patch(self, change: Change, step: Step, call_id: str, turn_id: str) -> None:
        is_new = change.before is None
        diff = "".join(unified_diff(change).splitlines(keepends=True)[2:])
        if is_new:
            body = f"*** Add File: {change.path}\n" + "".join(f"+{line}\n" for line in change.after.splitlines())
            recorded: Record = {"type": "add", "content": change.after}
        else:
            hunks = "".join("@@\n" if line.startswith("@@") else line for line in diff.splitlines(keepends=True))
            body = f"*** Update File: {change.path}\n{hunks}"
            recorded = {"type": "update", "unified_diff": diff, "move_path": None}
        stdout = f"Success. Updated the following files:\n{'A' if is_new else 'M'} {change.path}\n"
        self._item(
            step.begun,
            "custom_tool_call",
            status="completed",
            call_id=call_id,
            name="apply_patch",
            input=f"*** Begin Patch\n{body}*** End Patch",
        )
        output = json_text({"output": stdout, "metadata": {"exit_code": 0, "duration_seconds": 0.0}})
        self._item(step.done, "custom_tool_call_output", call_id=call_id, output=output)
        self._event(
            step.done,
            "patch_apply_end",
            call_id=call_id,
            turn_id=turn_id,
            stdout=stdout,
            stderr="",
            success=True,
            changes={f"{self._session.folder}/{change.path}": recorded},
            status="completed",
        )

    def _write_subagent(self, task: SubagentTask, step: Step, call_id: str) -> None:
        nickname = self._session.random.choice(NICKNAMES)
        identity: Record = {
            "parent_thread_id": self.thread_id,
            "depth": 1,
            "agent_path": None,
            "agent_nickname": nickname,
            "agent_role": "explorer",
        }
        rollout = _Rollout(self._session, SUBAGENT_MODEL, step.begun, identity)
        rollout.write_turn(Turn(task.prompt, step.begun, (), task.answer, step.done))
        self._subagents.append(rollout)
        arguments = json_text({"message": task.prompt, "agent_type": "explorer"})
        self._item(step.begun, "function_call", name="spawn_agent", arguments=arguments, call_id=call_id)
        output = json_text({"agent_id": rollout.thread_id, "nickname": nickname})
        self._item(step.begun, "function_call_output", call_id=call_id, output=output)
        self._event(
            step.begun,
            "collab_agent_spawn_end",
            call_id=call_id,
            sender_thread_id=self.thread_id,
            new_thread_id=rollout.thread_id,
            new_agent_nickname=nickname,
            new_agent_role="explorer",
            prompt=task.prompt,
            status="running",
        )
        status = json_text({"agent_path": rollout.thread_id, "status": {"completed": task.answer}})
        text = f"<subagent_notification>\n{status}\n</subagent_notification>"
        self._item(step.done, "message", role="user", content=[{"type": "input_text", "text": text}])

    def _write_compaction(self, turn: Turn) -> None:
        time = turn.asked - timedelta(seconds=20)
        first = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": self._session.turns[0].prompt}],
        }
        self._write("compacted", time, {"message": turn.summary, "replacement_history": [first]})
        self._event(time, "context_compacted")
        self._tokens.compact()

    def _write_usage(self, time: datetime, text: str) -> None:
        new, cached, output = self._tokens.count_call(text)
        last = {
            "input_tokens": new + cached,
            "cached_input_tokens": cached,
            "output_tokens": output,
            "reasoning_output_tokens": output // 4,
        }
        for name, count in last.items():
            self._totals[name] += count
        total, last_total = (
            {**counts, "total_tokens": counts["input_tokens"] + counts["output_tokens"]}
            for counts in (self._totals, last)
        )
        info = {
            "total_token_usage": total,
            "last_token_usage": last_total,
            "model_context_window": CONTEXT_WINDOW,
        }
        self._event(time, "token_count", info=info, rate_limits=None)


def _time_ordered_id(session: Session, time: datetime) -> str:
    """A UUID of version 7, which begins with the milliseconds since 1970."""
    tail = session.random.randbytes(10).hex()
    head = f"{int(time.timestamp() * 1000):012x}"
    return f"{head[:8]}-{head[8:]}-7{tail[:3]}-8{tail[3:6]}-{tail[6:18]}"
