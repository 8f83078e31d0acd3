/** The total orders over view synchrony, with the state of the group for members that want it. */
import type { Protocol } from "../../../../core/protocol.ts";
import { type Shape, text } from "../../../../core/shape.ts";
import type { ViewSynchronyOptions } from "../../view-synchrony.ts";
import { type FlushCausalTotal, type FlushIsis, flushCausalTotal, flushIsis } from "../flush.ts";
import { MAX_PAYLOAD_BYTES } from "../group.ts";
import { type StateTransfer, stateTransfer } from "./state-transfer.ts";
import type { Entry } from "./vocabulary.ts";

const anyText = text(MAX_PAYLOAD_BYTES);

export type IsisWithState<P = string> = StateTransfer<P, FlushIsis<Entry<P>>>;
export type CausalTotalWithState<P = string> = StateTransfer<P, FlushCausalTotal<Entry<P>>>;

export const isisWithState = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<IsisWithState<P>> => stateTransfer((entry) => flushIsis(options, entry), payload);

export const causalTotalWithState = <P = string>(
  options?: ViewSynchronyOptions,
  payload: Shape<P> = anyText as Shape<never>,
): Protocol<CausalTotalWithState<P>> => stateTransfer((entry) => flushCausalTotal(options, entry), payload);
