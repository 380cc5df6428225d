"""The service that Restate calls: a handler of COUNT durable steps."""

import restate

bench = restate.Service("bench")


async def step(i: int) -> dict[str, int]:
    return {"n": i}


@bench.handler()
async def chain(ctx: restate.Context, count: int) -> int:
    for i in range(count):
        await ctx.run_typed("step", step, i=i)
    return count


app = restate.app(services=[bench])
