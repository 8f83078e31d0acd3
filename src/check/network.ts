/**
 * Network semantics as data. What is on its way to one node is its *content*: plain data, interned. A semantics says
 * how a message joins a content and which deliveries a content allows.
 */
import type { NodeId } from "../core/protocol.ts";
import { interner } from "./interner.ts";
import { PairTable } from "./pair-table.ts";

/** A message on its way: who sent it, and the number of the message. */
export interface Parcel {
  readonly from: NodeId;
  readonly message: number;
}

/**
 * `fifo`: one queue per sender, so links keep their order and different senders interleave freely. `inbox`: one queue
 * for all senders. `bag`: no order at all.
 */
export type NetworkKind = "fifo" | "inbox" | "bag";

/** A content in its one canonical order; for `fifo` the parcels of one sender stand in sending order. */
type Content = readonly number[];

interface Semantics {
  /** Where a new parcel stands in the content. */
  place(content: Content, parcel: number, parcelOf: (id: number) => Parcel): number;
  /** Which places may be delivered next. */
  heads(content: Content, parcelOf: (id: number) => Parcel): number[];
}

const semantics: Readonly<Record<NetworkKind, Semantics>> = {
  inbox: {
    place: (content) => content.length,
    heads: (content) => (content.length > 0 ? [0] : []),
  },
  fifo: {
    // Sorted by sender, so that contents which differ in the order of senders only are one.
    place(content, parcel, parcelOf) {
      const { from } = parcelOf(parcel);
      const after = content.findIndex((other) => parcelOf(other).from > from);
      return after < 0 ? content.length : after;
    },
    heads: (content, parcelOf) =>
      content.flatMap((parcel, i) =>
        i === 0 || parcelOf(content[i - 1] as number).from !== parcelOf(parcel).from ? [i] : [],
      ),
  },
  bag: {
    place(content, parcel) {
      const after = content.findIndex((other) => other > parcel);
      return after < 0 ? content.length : after;
    },
    heads: (content) => content.flatMap((parcel, i) => (content[i - 1] === parcel ? [] : [i])),
  },
};

export interface Delivery {
  readonly parcel: number;
  /** The content that is left. */
  readonly rest: number;
}

/** Contents and parcels by number; content 0 is empty. */
export interface Network {
  parcelOf(id: number): Parcel;
  parcelId(from: NodeId, message: number): number;
  /** The content with the parcel added. */
  add(content: number, parcel: number): number;
  deliveries(content: number): readonly Delivery[];
  /** How many parcels a content has. */
  size(content: number): number;
  /** The parcels of a content, for pictures. */
  parcels(content: number): readonly Parcel[];
}

export function network(kind: NetworkKind): Network {
  const { place, heads } = semantics[kind];
  const parcels = interner<Parcel>(({ from, message }) => `${from}.${message}`);
  const contents = interner<Content>((content) => content.join());
  const sums = new PairTable();
  const options: (readonly Delivery[])[] = [];
  contents.idOf([]);

  return {
    parcelOf: (id) => parcels.valueOf(id),
    parcelId: (from, message) => parcels.idOf({ from, message }),
    add(content, parcel) {
      const known = sums.get(content, parcel);
      if (known >= 0) return known;
      const grown = [...contents.valueOf(content)];
      grown.splice(place(grown, parcel, parcels.valueOf), 0, parcel);
      const id = contents.idOf(grown);
      sums.add(content, parcel, id);
      return id;
    },
    deliveries(content) {
      const known = options[content];
      if (known !== undefined) return known;
      const items = contents.valueOf(content);
      const found = heads(items, parcels.valueOf).map((i) => ({
        parcel: items[i] as number,
        rest: contents.idOf([...items.slice(0, i), ...items.slice(i + 1)]),
      }));
      options[content] = found;
      return found;
    },
    size: (content) => contents.valueOf(content).length,
    parcels: (content) => contents.valueOf(content).map(parcels.valueOf),
  };
}
