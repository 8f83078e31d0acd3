/**
 * Network semantics as data. The messages in flight to one node are its *content*: plain data, interned. A semantics defines
 * how a message is added to a content and which deliveries a content allows.
 */
import type { NodeId } from "../core/protocol.ts";
import { interner, PairTable } from "./state-store.ts";

/** A message in flight: its sender, and the number of the message. */
export interface Envelope {
  readonly from: NodeId;
  readonly message: number;
}

/**
 * The delivery order. `fifo`: one queue per sender, so links keep their order and different senders interleave freely. `inbox`:
 * one queue for all senders. `bag`: no order.
 */
export type NetworkKind = "fifo" | "inbox" | "bag";

/** A content in canonical order. For `fifo`, the envelopes of one sender are in the order of sending. */
type Content = readonly number[];

interface Semantics {
  /** The index at which a new envelope is inserted. */
  place(content: Content, envelope: number, envelopeOf: (id: number) => Envelope): number;
  /** The indices of the envelopes that can be delivered next. */
  heads(content: Content, envelopeOf: (id: number) => Envelope): number[];
}

const semantics: Readonly<Record<NetworkKind, Semantics>> = {
  inbox: {
    place: (content) => content.length,
    heads: (content) => (content.length > 0 ? [0] : []),
  },
  fifo: {
    // Sorted by sender, so that contents that only differ in the order of senders are equal.
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

export interface Delivery {
  readonly envelope: number;
  /** The content after the delivery. */
  readonly rest: number;
}

/** Contents and envelopes by number. Content 0 is empty. */
export interface Network {
  envelopeOf(id: number): Envelope;
  envelopeId(from: NodeId, message: number): number;
  /** The content with the envelope added. */
  add(content: number, envelope: number): number;
  deliveries(content: number): readonly Delivery[];
  /** The number of envelopes in a content. */
  size(content: number): number;
  /** The envelopes of a content, for display. */
  envelopes(content: number): readonly Envelope[];
}

export function network(kind: NetworkKind): Network {
  const { place, heads } = semantics[kind];
  const envelopes = interner<Envelope>(({ from, message }) => `${from}.${message}`);
  const contents = interner<Content>((content) => content.join());
  const sums = new PairTable();
  const options: (readonly Delivery[])[] = [];
  contents.idOf([]);

  return {
    envelopeOf: (id) => envelopes.valueOf(id),
    envelopeId: (from, message) => envelopes.idOf({ from, message }),
    add(content, envelope) {
      const known = sums.get(content, envelope);
      if (known >= 0) return known;
      const grown = [...contents.valueOf(content)];
      grown.splice(place(grown, envelope, envelopes.valueOf), 0, envelope);
      const id = contents.idOf(grown);
      sums.add(content, envelope, id);
      return id;
    },
    deliveries(content) {
      const known = options[content];
      if (known !== undefined) return known;
      const items = contents.valueOf(content);
      const found = heads(items, envelopes.valueOf).map((i) => ({
        envelope: items[i] as number,
        rest: contents.idOf([...items.slice(0, i), ...items.slice(i + 1)]),
      }));
      options[content] = found;
      return found;
    },
    size: (content) => contents.valueOf(content).length,
    envelopes: (content) => contents.valueOf(content).map(envelopes.valueOf),
  };
}
