/**
 * Epoch-bully in which every run ends, so that all of them can be looked at: a node that is to call an election asks
 * for votes at once, and neither calls again nor renews its lease. What safety rests on is all there: votes, the
 * journal, announcements, leases that run out, resignations. It claims only what holds however wrong the timers are.
 */
import type { Context, Duration, Protocol, TimerOf } from "../../../core/protocol.ts";
import { changedContext } from "../../contexts.ts";
import { type EpochBully, epochBully } from "./epoch-bully.ts";
import type { EpochBullyOptions } from "./options.ts";

type Ctx = Context<EpochBully>;

export function boundedEpochBully(given?: Partial<EpochBullyOptions>): Protocol<EpochBully> {
  const { start, receive, timeout, command, properties, ...rest } = epochBully({ ...given, preVote: false });
  return {
    ...rest,
    properties: properties.filter(({ name }) => name === "one leader per epoch" || name === "epochs grow"),
    start: (state, ctx) => start?.(state, calm(ctx)),
    receive: calmly(receive),
    timeout: calmly(timeout),
    command: calmly(command),
  };
}

/** The same handlers, of which none arms the timers that go on for ever. The context is the last argument. */
function calmly<T extends object>(handlers: T): T {
  const entries = Object.entries(handlers as Record<string, (...args: unknown[]) => void>);
  return Object.fromEntries(
    entries.map(([name, handle]) => [
      name,
      (...args: unknown[]) => handle(...args.slice(0, -1), calm(args.at(-1) as Ctx)),
    ]),
  ) as T;
}

const calm = (ctx: Ctx): Ctx =>
  changedContext(ctx, {
    setTimer(timer: TimerOf<EpochBully>, duration: Duration) {
      if (timer !== "call" && timer !== "renew") ctx.setTimer(timer, duration);
    },
  });
