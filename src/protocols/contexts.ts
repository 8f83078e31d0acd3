/**
 * Protocols around protocols: the same handlers with a context in which something is done otherwise. An order over another
 * multicast broadcasts through it; a liar sends what its handlers do not say.
 */
import type { Context, NodeId } from "../core/protocol.ts";

// Handlers are looked up by name and messages are whatever the protocol says; the signatures of callers keep them honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** The context with some of what it does replaced. Drivers' contexts are classes, so that what they do is not to be spread. */
export function changedContext(ctx: Context<Any>, changes: Partial<Context<Any>>): Context<Any> {
  return {
    self: ctx.self,
    peers: ctx.peers,
    send: (to, message) => ctx.send(to, message),
    broadcast: (message) => ctx.broadcast(message),
    setTimer: (timer, duration) => ctx.setTimer(timer, duration),
    cancelTimer: (timer) => ctx.cancelTimer(timer),
    persist: (record) => ctx.persist(record),
    compact: (records) => ctx.compact(records),
    emit: (event, until) => ctx.emit(event, until),
    choose: (label, options) => ctx.choose(label, options),
    reply: (request, reply) => ctx.reply(request, reply),
    signatures: ctx.signatures,
    ...changes,
  };
}

/** A driver keeps one context for each node: so each is changed once. */
export function contexts(change: (ctx: Context<Any>) => Partial<Context<Any>>): (ctx: Context<Any>) => Context<Any> {
  const known = new WeakMap<object, Context<Any>>();
  return (ctx) => {
    const before = known.get(ctx);
    if (before !== undefined) return before;
    const changed = changedContext(ctx, change(ctx));
    known.set(ctx, changed);
    return changed;
  };
}

/** The same handlers, each with another context; `after` is called when one has come to its end. */
export function withContext(
  protocol: Any,
  contextFor: (ctx: Context<Any>) => Context<Any>,
  after: (ctx: Context<Any>) => void = () => {},
): Any {
  const { start, receive = {}, timeout = {}, command = {} } = protocol;
  function within(ctx: Context<Any>, handle: (ctx: Context<Any>) => void): void {
    handle(contextFor(ctx));
    after(ctx);
  }
  return {
    ...protocol,
    ...(start === undefined
      ? {}
      : { start: (state: Any, ctx: Any) => within(ctx, (changed) => start(state, changed)) }),
    receive: mapped(
      receive,
      (handle) => (state: Any, from: NodeId, message: Any, ctx: Any) =>
        within(ctx, (changed) => handle(state, from, message, changed)),
    ),
    timeout: mapped(timeout, (handle) => (state: Any, ctx: Any) => within(ctx, (changed) => handle(state, changed))),
    command: mapped(
      command,
      (handle) => (state: Any, given: Any, ctx: Any) => within(ctx, (changed) => handle(state, given, changed)),
    ),
  };
}

/** The table with each of its entries changed. */
export const mapped = (table: object, change: (entry: Any) => Any): object =>
  Object.fromEntries(Object.entries(table).map(([name, entry]) => [name, change(entry)]));
