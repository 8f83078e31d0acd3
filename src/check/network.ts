/**
 * Network semantics as data. The messages in flight to a node are its *content*, which is interned plain data. A
 * semantics defines how a message is added to a content and which deliveries the content allows.
 */
import type { NodeId } from "../core/protocol.ts";
import { interner, PairTable } from "./state-store.ts";

/** A message in flight: its sender and the message's number. */
export interface Envelope {
  readonly from: NodeId;
  readonly message: number;
}

/**
 * The delivery order. `fifo`: one queue per sender, so links keep their order and messages from different senders
 * interleave freely. `inbox`: one queue for all senders. `bag`: no order.
 */
export type NetworkKind = "fifo" | "inbox" | "bag";

/**
 * The ids of the envelopes in flight to a node, in canonical order. With `fifo`, each sender's envelopes are in the
 * order they were sent.
 */
type Content = readonly number[];

interface Semantics {
  /** Returns the index at which a new envelope is inserted. */
  place(content: Content, envelope: number, envelopeOf: (id: number) => Envelope): number;
  /** Returns the indexes of the envelopes that can be delivered next. */
  heads(content: Content, envelopeOf: (id: number) => Envelope): number[];
}

/** The delivery orders. */
export const semantics: Readonly<Record<NetworkKind, Semantics>> = {
  inbox: {
    place: (content) => content.length,
    heads: (content) => (content.length > 0 ? [0] : []),
  },
  fifo: {
    // Sort envelopes by sender, so that contents that differ only in the order of senders are equal.
    place(content, envelope, envelopeOf) {
      const { from } = envelopeOf(envelope);
      const after = content.findIndex((other) => envelopeOf(other).from > from);
      return after < 0 ? content.length : after;
    },
    heads: (content, envelopeOf) =>
      content.flatMap((envelope, i) =>
        i === 0 || envelopeOf(content[i - 1] as number).from !== envelopeOf(envelope).from ? [i] : [],
      ),
  },
  bag: {
    place(content, envelope) {
      const after = content.findIndex((other) => other > envelope);
      return after < 0 ? content.length : after;
    },
    heads: (content) => content.flatMap((envelope, i) => (content[i - 1] === envelope ? [] : [i])),
  },
};

/** A message that can be delivered next. */
export interface Delivery {
  readonly envelope: number;
  /** The content that remains after the delivery. */
  readonly rest: number;
}

/** Contents and envelopes, identified by number. Content 0 is empty. */
export interface Network {
  envelopeOf(id: number): Envelope;
  envelopeId(from: NodeId, message: number): number;
  /** Returns the content with the envelope added. */
  add(content: number, envelope: number): number;
  deliveries(content: number): readonly Delivery[];
  /** Returns the next message of each link or queue, even if it cannot arrive yet. */
  heads(content: number): readonly Delivery[];
  /** Returns the number of envelopes in a content. */
  size(content: number): number;
  /** Returns the envelopes in a content, for display. */
  envelopes(content: number): readonly Envelope[];
  /** Returns the content with every envelope replaced. */
  rewritten(content: number, rewrite: (envelope: number) => number): number;
}

export function network(kind: NetworkKind): Network {
  const { place, heads } = semantics[kind];
  const envelopes = interner<Envelope>(({ from, message }) => `${from}.${message}`);
  const contents = interner<Content>((content) => content.join());
  const sums = new PairTable();
  const options: (readonly Delivery[])[] = [];
  contents.idOf([]);

  function add(content: number, envelope: number): number {
    const known = sums.get(content, envelope);
    if (known >= 0) return known;
    const grown = [...contents.valueOf(content)];
    grown.splice(place(grown, envelope, envelopes.valueOf), 0, envelope);
    const id = contents.idOf(grown);
    sums.add(content, envelope, id);
    return id;
  }

  function deliveries(content: number): readonly Delivery[] {
    const known = options[content];
    if (known !== undefined) return known;
    const items = contents.valueOf(content);
    const found = heads(items, envelopes.valueOf).map((i) => ({
      envelope: items[i] as number,
      rest: contents.idOf([...items.slice(0, i), ...items.slice(i + 1)]),
    }));
    options[content] = found;
    return found;
  }

  return {
    envelopeOf: (id) => envelopes.valueOf(id),
    envelopeId: (from, message) => envelopes.idOf({ from, message }),
    add,
    deliveries,
    heads: deliveries,
    size: (content) => contents.valueOf(content).length,
    envelopes: (content) => contents.valueOf(content).map(envelopes.valueOf),
    rewritten: (content, rewrite) =>
      contents.valueOf(content).reduce((after, envelope) => add(after, rewrite(envelope)), 0),
  };
}
