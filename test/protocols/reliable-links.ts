/**
 * Reliable links for the simulator, where cuts and losses drop messages permanently. Like the links between real
 * processes, they number, acknowledge and resend messages between two nodes, so each message arrives once and in order
 * while both are running. Messages to an earlier incarnation are lost. Broadcasts are datagrams and stay unreliable.
 */
import type { Context, MessageOf, NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { changedContext } from "../../src/protocols/contexts.ts";

interface Link {
  /** The other node's incarnation, or 0 while it is unknown. */
  life: number;
  sent: number;
  unacknowledged: { number: number; body: unknown }[];
  received: number;
}

const RESEND_MS = 40;

// biome-ignore lint/suspicious/noExplicitAny: handlers are looked up by name
type Any = any;

export function linked<V extends Vocabulary>(protocol: Protocol<V>): Protocol<V> {
  const inner = protocol as Any;
  const contexts = new WeakMap<object, { state: Any; ctx: Context<Any> }>();
  let lives = 0;

  const link = (state: Any, peer: NodeId): Link => {
    state.links[peer] ??= { life: 0, sent: 0, unacknowledged: [], received: 0 };
    return state.links[peer];
  };

  function transmit(state: Any, to: NodeId, { number, body }: { number: number; body: unknown }, ctx: Any): void {
    ctx.send(to, { type: "frame", life: state.life, to: link(state, to).life, number, body });
  }

  function arm(state: Any, ctx: Any): void {
    if (state.isArmed) return;
    state.isArmed = true;
    ctx.setTimer("links", RESEND_MS);
  }

  /** Starts a new incarnation of the peer, with no messages in transit in either direction. */
  function meet(state: Any, peer: NodeId, life: number): void {
    const known = link(state, peer);
    if (life <= known.life) return;
    const unmet = known.life === 0 ? known.unacknowledged : [];
    state.links[peer] = { life, sent: unmet.length, unacknowledged: unmet, received: 0 };
  }

  function within(state: Any, outer: Any): Context<V> {
    const known = contexts.get(outer);
    if (known !== undefined) {
      known.state = state;
      return known.ctx;
    }
    const cell = { state } as { state: Any; ctx: Context<Any> };
    cell.ctx = changedContext(outer, {
      send(to: NodeId, body: MessageOf<V>) {
        const out = link(cell.state, to);
        out.sent += 1;
        const frame = { number: out.sent, body };
        arm(cell.state, outer);
        out.unacknowledged.push(frame);
        transmit(cell.state, to, frame, outer);
      },
      broadcast: (body: MessageOf<V>) => outer.broadcast({ type: "datagram", body }),
    });
    contexts.set(outer, cell);
    return cell.ctx;
  }

  const hand = (state: Any, from: NodeId, body: Any, ctx: Any): void =>
    inner.receive[body.type]?.(state.inner, from, body, within(state, ctx));
  const wrapped = (table: object | undefined): object =>
    Object.fromEntries(
      Object.entries(table ?? {}).map(([name, handle]) => [
        name,
        (state: Any, ...rest: Any[]) => {
          const ctx = rest.pop();
          handle(state.inner, ...rest, within(state, ctx));
        },
      ]),
    );

  return {
    ...inner,
    shapes: { ...inner.shapes, message: {} }, // The messages of links wrap the declared ones.
    init(self: NodeId, peers: readonly NodeId[]) {
      lives += 1;
      return { inner: inner.init(self, peers), life: lives, links: {}, isArmed: false };
    },
    start: (state: Any, ctx: Any) => inner.start?.(state.inner, within(state, ctx)),
    receive: {
      datagram: (state: Any, from: NodeId, { body }: Any, ctx: Any) => hand(state, from, body, ctx),
      frame(state: Any, from: NodeId, { life, to, number, body }: Any, ctx: Any) {
        meet(state, from, life);
        const known = link(state, from);
        if (life < known.life) return; // The sender was an earlier incarnation.
        const isMine = to === state.life; // The first incarnation may be unknown.
        const isNext = isMine && number === known.received + 1;
        if (isNext) known.received = number;
        ctx.send(from, { type: "acknowledgement", life: state.life, to: life, number: isMine ? known.received : 0 });
        if (isNext) hand(state, from, body, ctx);
      },
      acknowledgement(state: Any, from: NodeId, { life, to, number }: Any) {
        meet(state, from, life);
        const known = link(state, from);
        if (life !== known.life || to !== state.life) return;
        known.unacknowledged = known.unacknowledged.filter((frame) => frame.number > number);
      },
    },
    timeout: {
      ...wrapped(inner.timeout),
      links(state: Any, ctx: Any) {
        const waiting = Object.entries(state.links as Record<NodeId, Link>).filter(
          ([, { unacknowledged }]) => unacknowledged.length > 0,
        );
        for (const [peer, { unacknowledged }] of waiting)
          for (const frame of unacknowledged) transmit(state, Number(peer), frame, ctx);
        state.isArmed = false;
        if (waiting.length > 0) arm(state, ctx);
      },
    },
    command: wrapped(inner.command),
    replay: Object.fromEntries(
      Object.entries(inner.replay ?? {}).map(([type, apply]: [string, Any]) => [
        type,
        (state: Any, record: Any) => apply(state.inner, record),
      ]),
    ),
    properties: inner.properties.map((property: Any) => ({
      ...property,
      ...Object.fromEntries(
        ["given", "holds"]
          .filter((says) => property[says] !== undefined)
          .map((says) => [
            says,
            ({ alive, nodes, state, history }: Any, node: NodeId) =>
              property[says]({ alive, nodes, history, state: (each: NodeId) => state(each).inner }, node),
          ]),
      ),
    })),
    view: (state: Any, self: NodeId) => inner.view(state.inner, self),
  } as Protocol<V>;
}
