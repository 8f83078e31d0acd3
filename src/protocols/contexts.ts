/**
 * Functions that wrap a protocol so that its handlers, which stay unchanged, run with a context that behaves
 * differently. For example, an ordering layer broadcasts through another multicast, and a Byzantine node sends messages
 * that its handlers did not send.
 */
import type { Context, NodeId } from "../core/protocol.ts";

// Handlers are looked up by name, and messages can have any type. The exported functions' signatures keep callers
// type-safe.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/**
 * Returns a copy of the context with some of its methods replaced. A spread would lose methods, because drivers'
 * contexts are class instances.
 */
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

/**
 * Memoizes changed contexts. A driver uses the same context for a node throughout, so each context is changed only
 * once.
 */
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

/** Wraps the handlers so that they run with a different context. Calls `after` after each handler has returned. */
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

export const mapped = (table: object, change: (entry: Any) => Any): object =>
  Object.fromEntries(Object.entries(table).map(([name, entry]) => [name, change(entry)]));
