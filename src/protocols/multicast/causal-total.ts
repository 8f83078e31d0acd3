/**
 * Causal-total multicast: total order by agreement, over causal multicast. Every node proposes positions for a
 * message's possible causes before it proposes a position for the message itself, so the causes come first in the
 * agreed order. Birman, Schiper & Stephenson, ACM TOCS 1991; Coulouris et al. §15.4.3.
 *
 * Assumes   no crashes; reliable links, in any order; one closed group. If the carrier has views, members may crash.
 * Safety    C6 and C5: all nodes deliver in the same order, which respects happened-before. Integrity.
 * Liveness  validity, agreement.
 * Cost      3(N − 1) messages per multicast, as with total order alone, two thirds of them with N counters; three
 *           message delays.
 */
import type { MessageOf, Protocol } from "../../core/protocol.ts";
import { type Shape, text } from "../../core/shape.ts";
import { type Causal, causal } from "./causal.ts";
import { type Isis, isis } from "./isis.ts";
import { MAX_PAYLOAD_BYTES, type OrderOptions } from "./parts/group.ts";
import { type Over, over } from "./parts/layers.ts";

/** Vocabulary of causal-total multicast. */
export type CausalTotal<P = string> = Over<Isis<P>, Causal<MessageOf<Isis<P>>>>;

/** Creates causal-total multicast. */
export function causalTotal<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<CausalTotal<P>> {
  return { ...over(isis(options, payload), (carried) => causal(options, carried)), name: "causal-total" };
}
