"""Contenders of `compare`: `contenders.py NAME FOLDER STATE`, driven by lines.

`save TEXT` keeps the state of the task, as durably as the library does it by itself; `load` reads the latest one, `fill`
makes 1,000 other tasks, `list` lists all tasks, `loads` lists them with their states. Each answers with the nanoseconds
it took.
"""

import asyncio
import json
import os
import sqlite3
import sys
import time


class ByHand:
    """What a person writes who knows how: a temporary file, two syncs."""

    def __init__(self, folder, state):
        self.folder, self.state = folder, state

    def save(self, key, note):
        path = os.path.join(self.folder, key + ".json")
        with open(path + ".tmp", "w") as file:
            json.dump(dict(self.state, blockers=[note]), file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".tmp", path)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def load(self, key="task"):
        with open(os.path.join(self.folder, key + ".json")) as file:
            return json.load(file)

    def list(self, whole):
        keys = [name[:-5] for name in os.listdir(self.folder) if name.endswith(".json")]
        return [self.load(key) for key in keys] if whole else keys


class Sqlite:
    """One row for each task, write-ahead log, a sync for each save."""

    def __init__(self, folder, state):
        self.state = json.dumps(state)
        self.db = sqlite3.connect(os.path.join(folder, "states.db"), isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE IF NOT EXISTS states (key TEXT PRIMARY KEY, state TEXT)")

    def save(self, key, note):
        self.db.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (key, self.state + note))

    def load(self):
        return self.db.execute("SELECT state FROM states WHERE key = 'task'").fetchone()

    def list(self, whole):
        return self.db.execute(f"SELECT key{', state' if whole else ''} FROM states").fetchall()


class LangGraph:
    """`SqliteSaver`, a thread for each task."""

    def __init__(self, folder, state):
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.sqlite import SqliteSaver

        self.empty, self.state = empty_checkpoint, state
        db = sqlite3.connect(os.path.join(folder, "states.db"), check_same_thread=False)
        self.saver = SqliteSaver(db)
        self.saver.setup()

    def save(self, key, note):
        config = {"configurable": {"thread_id": key, "checkpoint_ns": ""}}
        checkpoint = self.empty()
        checkpoint["channel_values"] = dict(self.state, blockers=[note])
        self.saver.put(config, checkpoint, {"source": "loop", "step": 1}, {})

    def load(self):
        return self.saver.get_tuple({"configurable": {"thread_id": "task"}}).checkpoint

    def list(self, whole):
        return [found.checkpoint for found in self.saver.list(None, limit=1000)]


class AgentFramework:
    """`FileCheckpointStorage` of Microsoft's agent-framework, which does not sync; the 1,000 tasks are one workflow."""

    def __init__(self, folder, state):
        from agent_framework import FileCheckpointStorage, WorkflowCheckpoint

        self.make, self.state = WorkflowCheckpoint, state
        self.storage = FileCheckpointStorage(folder)
        self.loop = asyncio.new_event_loop()

    def save(self, key, note):
        name = "task" if key == "task" else "others"
        state = dict(self.state, blockers=[note])
        checkpoint = self.make(workflow_name=name, graph_signature_hash="x", state=state)
        self.loop.run_until_complete(self.storage.save(checkpoint))

    def load(self):
        return self.loop.run_until_complete(self.storage.get_latest(workflow_name="task"))

    def list(self, whole):
        ask = self.storage.list_checkpoints if whole else self.storage.list_checkpoint_ids
        return self.loop.run_until_complete(ask(workflow_name="others"))


class PydanticGraph:
    """`FileStatePersistence`, which does not sync and rewrites all snapshots of a run at each save."""

    def __init__(self, folder, state):
        from dataclasses import dataclass

        from pydantic_graph import BaseNode, End
        from pydantic_graph.persistence.file import FileStatePersistence

        @dataclass
        class Work(BaseNode[dict, None, str]):
            async def run(self, ctx) -> End[str]:
                return End("done")

        self.folder, self.state, self.work = folder, state, Work
        self.persistence = FileStatePersistence
        self.loop = asyncio.new_event_loop()
        self.runs = {}

    def run(self, key):
        from pathlib import Path
        from pydantic_graph import Graph

        if key not in self.runs:
            run = self.persistence(Path(self.folder) / (key + ".json"))
            run.set_graph_types(Graph(nodes=[self.work], state_type=dict, run_end_type=str))
            self.runs[key] = run
        return self.runs[key]

    def save(self, key, note):
        state = dict(self.state, blockers=[note])
        self.loop.run_until_complete(self.run(key).snapshot_node(state, self.work()))

    def load(self, key="task"):
        return self.loop.run_until_complete(self.run(key).load_all())[-1].state

    def list(self, whole):
        keys = [name[:-5] for name in os.listdir(self.folder) if name.endswith(".json")]
        return [self.load(key) for key in keys] if whole else keys


def main():
    names = {
        "by-hand": ByHand,
        "sqlite": Sqlite,
        "langgraph": LangGraph,
        "agent-framework": AgentFramework,
        "pydantic-graph": PydanticGraph,
    }
    name, folder, state = sys.argv[1:]
    with open(state) as file:
        contender = names[name](folder, json.load(file))
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        begun = time.perf_counter_ns()
        if verb == "save":
            contender.save("task", rest)
        elif verb == "load":
            contender.load()
        elif verb in ("list", "loads"):
            contender.list(verb == "loads")
        else:
            for n in range(1000):
                contender.save(f"other-{n}", rest)
        print(time.perf_counter_ns() - begun, flush=True)


main()
