/** What was done to the links of a node, in the words of a trace: written and read here alone. */
import type { NodeId } from "../core/protocol.ts";
import { type Delay, type LinkModel, requireLinkModel } from "./link-model.ts";

export const linkCut = (to: NodeId): string => `link to ${to} cut`;
export const linkMended = (to: NodeId): string => `link to ${to} mended`;
export const ALL_MENDED = "all links mended";
export const linkChanged = (to: NodeId, model: object): string => `link to ${to} changed: ${JSON.stringify(model)}`;

export const reaches = (heard: readonly NodeId[]): string =>
  `partition: reaches ${heard.length === 0 ? NOBODY : heard.join(", ")}`;
const NOBODY = "nobody";

/** Of all that a node sends. */
export interface SendingConditions {
  /** The probability that a message is dropped, 0 … 1. */
  readonly dropRate: number;
  readonly delayMs: { readonly min: number; readonly max: number };
}

export const sendingChanged = ({ dropRate, delayMs: { min, max } }: SendingConditions): string =>
  `${Number((100 * dropRate).toFixed(2))} % of its messages dropped, others delayed by ${min} to ${max} ms`;

/** What became of a node's links. */
export type LinkFault =
  | { readonly kind: "cut" | "mended"; readonly to: NodeId }
  | { readonly kind: "all mended" }
  /** Those that it reaches of all others; what it reached before counts no more. */
  | { readonly kind: "partition"; readonly reached: readonly NodeId[] }
  | { readonly kind: "changed"; readonly to: NodeId; readonly model: Readonly<Record<string, unknown>> }
  | ({ readonly kind: "sending" } & SendingConditions);

/** Null for a fault of another kind, such as a damaged journal, and for what is not written so. */
export function linkFaultIn(what: string): LinkFault | null {
  if (what === ALL_MENDED) return { kind: "all mended" };
  const [, to, turned] = /^link to (\d+) (cut|mended)$/.exec(what) ?? [];
  if (to !== undefined) return { kind: turned as "cut" | "mended", to: Number(to) };
  const [, heard] = /^partition: reaches (nobody|\d+(?:, \d+)*)$/.exec(what) ?? [];
  if (heard !== undefined) return { kind: "partition", reached: heard === NOBODY ? [] : heard.split(", ").map(Number) };
  const [, changed, model] = /^link to (\d+) changed: (\{.*\})$/.exec(what) ?? [];
  if (changed !== undefined) return changedIn(Number(changed), model ?? "");
  const [, percent, min, max] =
    /^(\d+(?:\.\d+)?) % of its messages dropped, others delayed by (\d+(?:\.\d+)?) to (\d+(?:\.\d+)?) ms$/.exec(what) ??
    [];
  if (percent === undefined) return null;
  return { kind: "sending", dropRate: Number(percent) / 100, delayMs: { min: Number(min), max: Number(max) } };
}

/** A fault as it is written beside a mark: `link to 1: 100 ms of delay`. */
export function faultText(what: string): string {
  const fault = linkFaultIn(what);
  if (fault?.kind !== "changed") return what;
  return `link to ${fault.to}: ${linkTexts(fault.model).join(", ") || "no faults"}`;
}

/** What differs on a link from one that delivers every message once and in order. */
export function linkTexts({ delay, lossRate = 0, duplicateRate = 0, order, bytesPerMs }: Partial<LinkModel>): string[] {
  const isLimited = bytesPerMs !== undefined && Number.isFinite(bytesPerMs);
  return [
    ...(lossRate > 0 ? [`${percent(lossRate)} dropped`] : []),
    ...(duplicateRate > 0 ? [`${percent(duplicateRate)} twice`] : []),
    ...(delay === undefined ? [] : [`${delayText(delay)} of delay`]),
    ...(order === "none" ? ["messages overtake each other"] : []),
    ...(isLimited ? [`${bytesPerMs} bytes per ms`] : []),
  ];
}

const percent = (rate: number): string => `${Number((100 * rate).toFixed(1))} % of the messages`;

function delayText(delay: Delay): string {
  if (typeof delay === "number") return `${delay} ms`;
  if ("normal" in delay) return `about ${delay.normal.meanMs} ms`;
  return "logNormal" in delay ? `about ${delay.logNormal.medianMs} ms` : `${delay.join(" to ")} ms`;
}

function changedIn(to: NodeId, text: string): LinkFault | null {
  try {
    const written = JSON.parse(text) as Partial<LinkModel>;
    // JSON writes Infinity, a link without a limit, as null.
    const model = { ...written, ...(written.bytesPerMs === null && { bytesPerMs: Number.POSITIVE_INFINITY }) };
    requireLinkModel(model, "the link");
    return { kind: "changed", to, model };
  } catch {
    return null;
  }
}
