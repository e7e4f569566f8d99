"""An agent that is killed at any call of the store while it looks at files: nothing is called exact that was not so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest

from clew.errors import ClewError
from tests.files.storing import NOTES, Deed, World
from tests.files.test_store import shown
from tests.store.support import Kill, Mortal, in_memory

Act = Callable[[World, "Mortal", int], None]


@contextmanager
def killing(world: World, system: Mortal, at: int) -> Iterator[None]:
    world.session.close()
    system.left = at
    with suppress(Kill):
        yield
    if system.is_dead:
        system.bury()


def before(world: World, system: Mortal, at: int) -> None:
    """Killed in the look before a tool."""
    message = world.note(world.session.assistant("I do it."))
    with killing(world, system, at):
        world.session.watch(message, root=world.work).before()


def behind(world: World, system: Mortal, at: int) -> None:
    """Killed in the look behind it."""
    message = world.note(world.session.assistant("I do it."))
    watch = world.session.watch(message, root=world.work)
    watch.before()
    world.deed(Deed("append", "a.txt"), "u")
    world.deed(Deed("append", "sub/c.txt"), "u")
    with killing(world, system, at):
        watch.after()


def again(world: World, system: Mortal, at: int) -> None:
    """Killed in the look that finds what a tool did that was killed before."""
    world.killed([Deed("append", "a.txt"), Deed("append", "sub/c.txt")], named=False)
    world.person(Deed("append", "b.txt"))
    before(world, system, at)


def undo(world: World, system: Mortal, at: int) -> None:
    """The same in an undo."""
    world.killed([Deed("append", "a.txt"), Deed("append", "sub/c.txt")], named=False)
    unsettled(world, system, at)
    world.restart()
    with suppress(ClewError):
        world.session.roll_back_interrupted_undo()


def unsettled(world: World, system: Mortal, at: int) -> None:
    """The same, and then the agent just goes on."""
    with killing(world, system, at):
        world.session.undo(root=world.work, force=True)


def unsettled_whole(world: World, system: Mortal, at: int) -> None:
    """The same in an undo of several files that were all seen."""
    world.reply([([Deed("append", "a.txt"), Deed("append", "b.txt"), Deed("append", "sub/c.txt")], False)])
    unsettled(world, system, at)


def lived(act: Act, at: int) -> bool:
    """A session in which the agent is killed once; True where it was over before that."""
    system = Mortal()
    with in_memory() as home:
        world = World(home, ("a.txt", "b.txt", NOTES), system)
        world.look(named=False)
        world.reply([([Deed("append", "a.txt")], False)])
        world.person(Deed("prepend", "a.txt"))
        world.person(Deed("prepend", NOTES))
        world.say("user")
        act(world, system, at)
        world.restart()
        world.say("user")
        world.person(Deed("prepend", "b.txt"))
        world.say("user")
        world.look(named=at % 2 == 0)
        world.person(Deed("append", NOTES))
        world.say("user")
        world.look(named=at % 3 == 0)
        shown(world, world.history())
    return not system.is_dead


@pytest.mark.slow
@pytest.mark.parametrize("act", [before, behind, again, undo, unsettled, unsettled_whole])
def test_S04_killed_at_any_call_of_a_look(act: Act) -> None:
    last = next(at for at in count(1) if lived(act, at))
    assert last > 15
