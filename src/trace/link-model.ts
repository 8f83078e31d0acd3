/** Models of links and their effects on messages. Simulations use them and traces record them. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";

/**
 * A delay in milliseconds: constant, uniform, or drawn from the named distribution. A constant delay uses no random
 * numbers.
 */
export type Delay =
  | number
  | readonly [minMs: number, maxMs: number]
  /** Values below 0 count as 0. */
  | { readonly normal: { readonly meanMs: number; readonly deviationMs: number } }
  /** Half of the draws are below the median. `sigma` is the standard deviation of the delay's logarithm. */
  | { readonly logNormal: { readonly medianMs: number; readonly sigma: number } };

/** One direction of a connection between two nodes. */
export interface LinkModel {
  /** How long a message takes to arrive, in milliseconds. */
  readonly delay: Delay;
  /** The probability, from 0 to 1, that a message is lost. */
  readonly lossRate: number;
  /** The probability, from 0 to 1, that a message that is not lost arrives twice. Both copies have the same id. */
  readonly duplicateRate: number;
  /** `fifo`: no message overtakes another. `none`: the delays alone decide the order. */
  readonly order: "fifo" | "none";
  /**
   * The bandwidth in bytes per millisecond. A link sends one message after another at this rate. The size of a message
   * is the length of its JSON text. Infinity means no limit.
   */
  readonly bytesPerMs: number;
}

/** Validates a delay. @throws UsageError if the delay is invalid */
export function requireDelay(delay: Delay, name: string): void {
  const isTime = (value: unknown): boolean => Number.isFinite(value) && (value as number) >= 0;
  const refuse = (what: string, expected: string, got: unknown): never => {
    throw new UsageError("bad-option", unexpected(`${name}${what}`, expected, got));
  };
  const requireTime = (what: string, value: unknown): void =>
    void (isTime(value) || refuse(what, "a finite number >= 0", value));
  if (typeof delay === "number") return requireTime("", delay);
  if (Array.isArray(delay)) {
    const [min, max] = delay as readonly unknown[];
    if (delay.length !== 2 || !isTime(min) || !isTime(max) || (min as number) > (max as number))
      refuse("", "[least, most] with 0 <= least <= most", delay);
  } else if (typeof delay === "object" && delay !== null && "normal" in delay) {
    requireTime(".normal.meanMs", delay.normal?.meanMs);
    requireTime(".normal.deviationMs", delay.normal?.deviationMs);
  } else if (typeof delay === "object" && delay !== null && "logNormal" in delay) {
    requireTime(".logNormal.medianMs", delay.logNormal?.medianMs);
    requireTime(".logNormal.sigma", delay.logNormal?.sigma);
  } else refuse("", "milliseconds, [least, most], { normal } or { logNormal }", delay);
}

/** Validates a link model. `name` is its name in error messages. @throws UsageError if the model is invalid */
export function requireLinkModel(model: Partial<LinkModel>, name: string): void {
  const refuse = (field: string, expected: string, got: unknown): never => {
    throw new UsageError("bad-option", unexpected(`${name}.${field}`, expected, got));
  };
  const { delay, lossRate, duplicateRate, order, bytesPerMs, ...stray } = model;
  for (const field of Object.keys(stray)) refuse(field, "absent", (stray as Record<string, unknown>)[field]);
  if (delay !== undefined) requireDelay(delay, `${name}.delay`);
  // Models may come from files, so check the types: `null >= 0` is true, and so is `"0.5" >= 0`.
  const isNumber = (value: unknown): value is number => typeof value === "number";
  for (const [field, rate] of Object.entries({ lossRate, duplicateRate })) {
    if (rate !== undefined && !(isNumber(rate) && rate >= 0 && rate <= 1)) refuse(field, "a number from 0 to 1", rate);
  }
  if (order !== undefined && order !== "fifo" && order !== "none") refuse("order", "fifo or none", order);
  if (bytesPerMs !== undefined && !(isNumber(bytesPerMs) && bytesPerMs > 0))
    refuse("bytesPerMs", "a number > 0", bytesPerMs);
}

export const linkCut = (to: NodeId): string => `link to ${to} cut`;
export const linkMended = (to: NodeId): string => `link to ${to} mended`;
export const ALL_MENDED = "all links mended";
export const linkChanged = (to: NodeId, model: object): string => `link to ${to} changed: ${JSON.stringify(model)}`;

export const reaches = (heard: readonly NodeId[]): string =>
  `partition: reaches ${heard.length === 0 ? NOBODY : heard.join(", ")}`;
const NOBODY = "nobody";

/** Conditions that apply to all messages that a node sends. */
export interface SendingConditions {
  /** The probability, from 0 to 1, that a message is dropped. */
  readonly dropRate: number;
  readonly delayMs: { readonly min: number; readonly max: number };
}

export const sendingChanged = ({ dropRate, delayMs: { min, max } }: SendingConditions): string =>
  `${Number((100 * dropRate).toFixed(2))} % of its messages dropped, others delayed by ${min} to ${max} ms`;

/** A change to a node's links. */
export type LinkFault =
  | { readonly kind: "cut" | "mended"; readonly to: NodeId }
  | { readonly kind: "all mended" }
  /** A partition. `reached`: the nodes that the node can still reach. Earlier changes no longer apply. */
  | { readonly kind: "partition"; readonly reached: readonly NodeId[] }
  | { readonly kind: "changed"; readonly to: NodeId; readonly model: Readonly<Record<string, unknown>> }
  | ({ readonly kind: "sending" } & SendingConditions);

/**
 * Parses a link fault. Returns null for any other kind of fault, such as a damaged journal, and for text in any other
 * format.
 */
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

/** Returns the label of a fault's mark, such as `link to 1: 100 ms of delay`. */
export function faultText(what: string): string {
  const fault = linkFaultIn(what);
  if (fault?.kind !== "changed") return what;
  return `link to ${fault.to}: ${linkTexts(fault.model).join(", ") || "no faults"}`;
}

/** Describes how a link differs from one that delivers every message once and in order. */
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
    // In JSON, the Infinity of a link without a bandwidth limit is written as null.
    const model = { ...written, ...(written.bytesPerMs === null && { bytesPerMs: Number.POSITIVE_INFINITY }) };
    requireLinkModel(model, "the link");
    return { kind: "changed", to, model };
  } catch {
    return null;
  }
}
