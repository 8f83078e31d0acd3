/**
 * Wraps protocols: the same handlers run with a context that behaves differently. For example, an order on top of another
 * multicast broadcasts through it, and a Byzantine node sends messages that its handlers did not send.
 */
import type { Context, NodeId } from "../core/protocol.ts";

// Handlers are looked up by name and messages have any type. The signatures of the exported functions keep callers
// type-safe.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** Copies a context and replaces some of its methods. Drivers' contexts are class instances, so spreading would lose methods. */
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

/** Memoizes changed contexts. A driver keeps one context per node, so each is changed once. */
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

/** Runs the handlers with another context. `after` is called when a handler has returned. */
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

/** Applies `change` to each entry of the table. */
export const mapped = (table: object, change: (entry: Any) => Any): object =>
  Object.fromEntries(Object.entries(table).map(([name, entry]) => [name, change(entry)]));
