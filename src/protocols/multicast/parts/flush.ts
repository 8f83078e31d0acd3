/**
 * The orders over view synchrony: when the group changes, what is on its way is brought to an end first, the same way at all
 * who go on (the flush), so that nobody waits for who is no more. An order multicasts only what its carrier is sure to take,
 * whatever that costs it later; what is sent beyond waits, and after that is refused before anything of it has been sent.
 */
import type { MessageOf, Protocol } from "../../../core/protocol.ts";
import { type Shape, text } from "../../../core/shape.ts";
import { type Causal, causal } from "../causal.ts";
import { type Fifo, fifo } from "../fifo.ts";
import { sureRoom } from "../ip-multicast/options.ts";
import { type Isis, isis } from "../isis.ts";
import { type ViewSynchrony, type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";
import { MAX_PAYLOAD_BYTES } from "./group.ts";
import { type Over, over } from "./over.ts";

type Carried<U extends { state: object; message: { type: string } }> = Over<U, ViewSynchrony<MessageOf<U>>>;
export type FlushFifo<P = string> = Carried<Fifo<P>>;
export type FlushCausal<P = string> = Carried<Causal<P>>;
export type FlushIsis<P = string> = Carried<Isis<P>>;
export type FlushFifoTotal<P = string> = Over<Isis<P>, Carried<Fifo<MessageOf<Isis<P>>>>>;
export type FlushCausalTotal<P = string> = Over<Isis<P>, Carried<Causal<MessageOf<Isis<P>>>>>;

const anyText = text(MAX_PAYLOAD_BYTES);

/** In no view at first, and what it says waits where the carrier has no room. */
const carried = (options: ViewSynchronyOptions = {}) =>
  ({ begin: "outside", room: sureRoom(options.multicast) }) as const;

/** Carries the messages of an order in views; options are its own. */
export type ViewCarrier = <P>(options: ViewSynchronyOptions | undefined, payload: Shape<P>) => Protocol<ViewSynchrony<P>>;

export function flushFifo<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
  carrier: ViewCarrier = viewSynchrony,
): Protocol<FlushFifo<P>> {
  return over(fifo(carried(options), payload), (body) => carrier(options, body));
}

export function flushCausal<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
  carrier: ViewCarrier = viewSynchrony,
): Protocol<FlushCausal<P>> {
  return over(causal(carried(options), payload), (body) => carrier(options, body));
}

export function flushIsis<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
  carrier: ViewCarrier = viewSynchrony,
): Protocol<FlushIsis<P>> {
  return over(isis(carried(options), payload), (body) => carrier(options, body));
}

export function flushFifoTotal<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<FlushFifoTotal<P>> {
  const total = over(isis(carried(options), payload), (body) => flushFifo(options, body));
  return { ...total, name: "fifo-total" };
}

export function flushCausalTotal<P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
  carrier: ViewCarrier = viewSynchrony,
): Protocol<FlushCausalTotal<P>> {
  const total = over(isis(carried(options), payload), (body) => flushCausal(options, body, carrier));
  return { ...total, name: "causal-total" };
}
