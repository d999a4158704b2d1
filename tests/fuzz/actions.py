"""Random sessions: the fate of each request, whoever says anything in whichever order."""

from collections.abc import Callable, Hashable, Iterator

from mcp_abridge.session.outputs import RunInBackground, Shape, ToClient

from tests.fuzz import speech
from tests.fuzz.fuzzer import Wrong
from tests.fuzz.grammar import Dice
from tests.fuzz.world import Completion, World

Action = Callable[[World, Dice], None]


STEPS = 60
_LAST_LINES = 30  # of the history, beside a finding


def check_one(seed: int, index: int) -> Iterator[Hashable]:
    dice = Dice.of(seed, "trace", index)
    world = World(dice)
    try:
        for act in dice.choices([*ACTIONS], [*ACTIONS.values()], k=dice.within(4, STEPS)):
            world.history.append(act.__name__)
            act(world, dice)
            yield act.__name__, world.state()
        world.end()
    except Exception as error:
        error.add_note("\n".join(world.history[-_LAST_LINES:]))
        raise


def ask(world: World, dice: Dice) -> None:
    world.client_says(dice, _request(world, dice))


def remark(world: World, dice: Dice) -> None:
    result = speech.line(f'"id":{dice.pick(speech.IDS)},"result":{{}}')
    world.client_says(dice, dice.pick((result, *[speech.notice(dice, world.ids)] * 2)))


def mumble(world: World, dice: Dice) -> None:
    world.client_says(dice, speech.garbled(dice, _request(world, dice)))


def answer(world: World, dice: Dice) -> None:
    if not world.inbox:
        return ask(world, dice)
    request = world.inbox.pop(dice.below(len(world.inbox)))
    world.mark += 1
    raw = speech.answer(dice, request.id, request.method, world.mark)
    world.answered.append((request.exchange, raw))
    world.server_says(dice, raw, request.exchange)


def oddity(world: World, dice: Dice) -> None:
    """Have the server send a line that is no first answer."""
    exchange, kind = dice.pick(world.exchanges), dice.below(9)
    world.mark += 1
    mark = world.mark
    id = dice.pick([each.id for each in world.inbox if not each.ours] or ["7"])
    if kind == 0 and world.answered:
        exchange, raw = dice.pick(world.answered)
    elif kind == 1:
        raw = speech.answer(dice, f'"none {mark}"', "tools/call", mark)
    elif kind == 2:
        raw = speech.line(f'"id":{id},"method":"roots/list","params":{{"mark":{mark}}}')
    elif kind == 3:
        params = f'{{"progressToken":{dice.below(60)},"mark":{mark}}}'
        raw = speech.line(f'"method":"notifications/progress","params":{params}')
    elif kind == 4:
        other = id.strip('"') if id[:1] == '"' else f'"{id}"'
        raw = speech.line(f'"id":{other},"result":{{"mark":{mark}}}')
    elif kind == 5:
        raw = speech.news(dice, mark)
    elif kind == 6:
        notice = speech.line('"method":"notifications/message"')
        world.account.server_says(notice, exchange)
        raw = b"debug {1} " + notice
    else:
        raw = speech.garbled(dice, speech.answer(dice, '"x"', "tools/call", mark))
    world.server_says(dice, raw, exchange)


def carry(world: World, dice: Dice) -> None:
    if world.tasks:
        world.carry(dice.pick(world.tasks), dice)
    else:
        ask(world, dice)


def silence(world: World, dice: Dice) -> None:
    if world.probes:
        token = dice.pick(list(world.probes))
        world.unanswered(token, "the server is gone")


def wait(world: World, dice: Dice) -> None:
    """Let time pass, and have what is overdue answered."""
    world.now += dice.pick((1.0, 3.0, 6.0))
    for exchange in world.exchanges:
        slots = None if exchange == b"" else world.slots_of(exchange)
        seconds = world.session.time_left(slots)
        outputs = world.session.expire(slots)
        if bool(outputs) != (seconds == 0.0):
            raise Wrong("what is due is answered, and nothing else", f"{seconds} {outputs}")
        world.account.late(outputs, exchange)
        world.take(outputs, exchange)


def reload(world: World, dice: Dice) -> None:
    world.rules = dice.pick(world.rulesets)


def leave(world: World, dice: Dice) -> None:
    exchange = dice.pick(world.exchanges)
    if exchange == b"":
        return
    for task in [task for task in world.tasks if task.exchange == exchange]:
        for output in task.outputs:
            work = output.output if isinstance(output, Completion) else output
            if isinstance(work, RunInBackground):
                world.session.given_up(work.token)
            elif isinstance(work, Shape):
                world.session.given_up(work.job.token)
        world.tasks.remove(task)
    world.inbox = [each for each in world.inbox if each.exchange != exchange]
    world.account.over(exchange, excused=True)
    world.session.forget_pending(world.slots_of(exchange))


def hang_up(world: World, dice: Dice) -> None:
    exchange = dice.pick(world.exchanges)
    if exchange != b"":
        # What was said in it is on its way by then.
        world.flush(exchange)
        world.inbox = [each for each in world.inbox if each.exchange != exchange]
        world.account.over(exchange)
        lines = world.session.fail_pending("the stream ended", world.slots_of(exchange))
        world.take(tuple(map(ToClient, lines)), exchange)


def _request(world: World, dice: Dice) -> bytes:
    world.mark += 1
    id = str(world.mark)
    if dice.one_in(8):
        id = dice.pick(speech.IDS)
    elif dice.one_in(15) and world.ids:
        id = dice.pick(world.ids)
    world.ids.append(id)
    return speech.request(dice, id, world.mark)


ACTIONS: dict[Action, int] = {
    ask: 24,
    answer: 22,
    carry: 40,
    oddity: 9,
    remark: 5,
    mumble: 4,
    silence: 2,
    wait: 3,
    reload: 2,
    leave: 1,
    hang_up: 1,
}
