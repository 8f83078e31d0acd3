/**
 * FIFO-total multicast: total order by agreement over FIFO multicast. The messages of one sender are proposed, and so
 * agreed, in the order of sending. Coulouris et al. §15.4.3.
 *
 * Assumes   no crashes; reliable links, in any order; one closed group. With a carrier with views, members may crash.
 * Safety    C6 and C4: all nodes deliver in the same order, and the messages of one sender in the order of sending.
 *           Integrity.
 * Liveness  validity, agreement.
 * Cost      3(N − 1) messages per multicast, as total order alone; three message times.
 */
import type { MessageOf, Protocol } from "../../core/protocol.ts";
import { type Shape, text } from "../../core/shape.ts";
import { type Fifo, fifo } from "./fifo.ts";
import { type Isis, isis } from "./isis.ts";
import { MAX_PAYLOAD_BYTES, type OrderOptions } from "./parts/group.ts";
import { type Over, over } from "./parts/layers.ts";

/** Vocabulary of FIFO-total multicast. */
export type FifoTotal<P = string> = Over<Isis<P>, Fifo<MessageOf<Isis<P>>>>;

/** Creates FIFO-total multicast. */
export function fifoTotal<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<FifoTotal<P>> {
  return { ...over(isis(options, payload), (carried) => fifo(options, carried)), name: "fifo-total" };
}
