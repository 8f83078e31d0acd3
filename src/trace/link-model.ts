/** What a link does to messages: as simulations are given it, and as traces tell of it. */
import { UsageError, unexpected } from "../core/errors.ts";

/** In milliseconds: always the same, or uniform, or distributed as named. A constant draws nothing. */
export type Delay =
  | number
  | readonly [minMs: number, maxMs: number]
  /** What falls below 0 counts as 0. */
  | { readonly normal: { readonly meanMs: number; readonly deviationMs: number } }
  /** Half of the draws lie below the median; `sigma` is the deviation of the logarithm. */
  | { readonly logNormal: { readonly medianMs: number; readonly sigma: number } };

/** One direction of a connection between two nodes. */
export interface LinkModel {
  /** How long a message travels. */
  readonly delay: Delay;
  /** How likely it is, from 0 to 1, that a message is lost. */
  readonly lossRate: number;
  /** How likely it is, from 0 to 1, that a message that is not lost arrives twice. Both arrivals carry the same id. */
  readonly duplicateRate: number;
  /** `fifo`: no message overtakes another. `none`: messages arrive as their delays have it. */
  readonly order: "fifo" | "none";
  /** A link sends one message after the other, at this rate; a message is as long as its JSON text. Infinity: no limit. */
  readonly bytesPerMs: number;
}

/** @throws UsageError */
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

/** Refuses a model that is none, naming it `name`. @throws UsageError */
export function requireLinkModel(model: Partial<LinkModel>, name: string): void {
  const refuse = (field: string, expected: string, got: unknown): never => {
    throw new UsageError("bad-option", unexpected(`${name}.${field}`, expected, got));
  };
  const { delay, lossRate, duplicateRate, order, bytesPerMs, ...stray } = model;
  for (const field of Object.keys(stray)) refuse(field, "absent", (stray as Record<string, unknown>)[field]);
  if (delay !== undefined) requireDelay(delay, `${name}.delay`);
  // Models come from files, too: `null >= 0` is true, and so is `"0.5" >= 0`.
  const isNumber = (value: unknown): value is number => typeof value === "number";
  for (const [field, rate] of Object.entries({ lossRate, duplicateRate })) {
    if (rate !== undefined && !(isNumber(rate) && rate >= 0 && rate <= 1)) refuse(field, "a number from 0 to 1", rate);
  }
  if (order !== undefined && order !== "fifo" && order !== "none") refuse("order", "fifo or none", order);
  if (bytesPerMs !== undefined && !(isNumber(bytesPerMs) && bytesPerMs > 0))
    refuse("bytesPerMs", "a number > 0", bytesPerMs);
}
