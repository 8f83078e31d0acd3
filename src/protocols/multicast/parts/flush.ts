/** Orders over view synchrony. Members exchange messages directly. */
import type { MessageOf, Protocol } from "../../../core/protocol.ts";
import { type Shape, text } from "../../../core/shape.ts";
import { type Causal, causal } from "../causal.ts";
import { type Fifo, fifo } from "../fifo.ts";
import { type IpMulticastOptions, sureRoom } from "../ip-multicast/vocabulary.ts";
import { type Isis, isis } from "../isis.ts";
import { type ViewSynchrony, type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";
import { MAX_PAYLOAD_BYTES } from "./group.ts";
import { type Over, over } from "./layers.ts";

// Orders over a carrier with views. When the group changes, the messages in flight are completed first, in the same way
// at all surviving members (the flush), so that no member waits for a departed one. An order multicasts a message only
// if its carrier is certain to accept it. Other messages wait, and if the queue is full, messages are refused before
// any part of them has been sent.

type Carried<U extends { state: object; message: { type: string } }> = Over<U, ViewSynchrony<MessageOf<U>>>;
type FlushFifo<P = string> = Carried<Fifo<P>>;
type FlushCausal<P = string> = Carried<Causal<P>>;
export type FlushIsis<P = string> = Carried<Isis<P>>;
export type FlushCausalTotal<P = string> = Over<Isis<P>, Carried<Causal<MessageOf<Isis<P>>>>>;

interface CarrierOptions {
  readonly multicast?: Partial<Omit<IpMulticastOptions, "begin">>;
}

/** Creates the carrier that transports an order's messages in views. */
export type ViewCarrier<O extends CarrierOptions> = <P>(options: O, payload: Shape<P>) => Protocol<ViewSynchrony<P>>;

/** Options for an order that starts outside any view. Messages wait while the carrier has no room. */
const carried = ({ multicast }: CarrierOptions) => ({ begin: "outside", room: sureRoom(multicast) }) as const;

/** Creates all orders over a carrier with the given options. */
export const ordersOver = <O extends CarrierOptions>(carrier: ViewCarrier<O>, options: O) => ({
  fifo: <P>(payload: Shape<P>): Protocol<FlushFifo<P>> =>
    over(fifo(carried(options), payload), (body) => carrier(options, body)),
  causal: <P>(payload: Shape<P>): Protocol<FlushCausal<P>> =>
    over(causal(carried(options), payload), (body) => carrier(options, body)),
  total: <P>(payload: Shape<P>): Protocol<FlushIsis<P>> =>
    over(isis(carried(options), payload), (body) => carrier(options, body)),
  causalTotal: <P>(payload: Shape<P>): Protocol<FlushCausalTotal<P>> => ({
    ...over(isis(carried(options), payload), (lower) =>
      over(causal(carried(options), lower), (body) => carrier(options, body)),
    ),
    name: "causal-total",
  }),
});

type FlushFifoTotal<P = string> = Over<Isis<P>, FlushFifo<MessageOf<Isis<P>>>>;

const anyText = text(MAX_PAYLOAD_BYTES);
const inViews = (options: ViewSynchronyOptions = {}) => ordersOver<ViewSynchronyOptions>(viewSynchrony, options);

/** Creates FIFO order over view synchrony. */
export const flushFifo = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushFifo<P>> => inViews(options).fifo(payload);

/** Creates causal order over view synchrony. */
export const flushCausal = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushCausal<P>> => inViews(options).causal(payload);

/** Creates the total order of ISIS over view synchrony. */
export const flushIsis = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushIsis<P>> => inViews(options).total(payload);

/** Creates causal-total order over view synchrony. */
export const flushCausalTotal = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushCausalTotal<P>> => inViews(options).causalTotal(payload);

/** Creates FIFO-total order over view synchrony. */
export function flushFifoTotal<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushFifoTotal<P>> {
  const order = { begin: "outside", room: sureRoom(options?.multicast) } as const;
  return { ...over(isis(order, payload), (body) => flushFifo(options, body)), name: "fifo-total" };
}
