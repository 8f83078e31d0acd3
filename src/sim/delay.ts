/** Samplers of random delays. Equal seeds give exactly equal draws, bit for bit, on every JavaScript engine. */

import type { Duration } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import { requireDuration } from "../driver/effect-checks.ts";
import { type Delay, requireDelay } from "../trace/link-model.ts";

export type { Delay };

export type Sampler = () => number;

/**
 * Creates a sampler.
 * @param name the name of the delay in error messages.
 * @throws UsageError if the delay is invalid
 */
export function sampler(delay: Delay, source: Random, name: string): Sampler {
  requireDelay(delay, name);
  if (typeof delay === "number") return () => delay;
  if ("normal" in delay) {
    const { meanMs, deviationMs } = delay.normal;
    return () => Math.max(0, meanMs + deviationMs * standardNormal(source));
  }
  if ("logNormal" in delay) {
    const { medianMs, sigma } = delay.logNormal;
    return () => medianMs * exponential(sigma * standardNormal(source));
  }
  const [minMs, maxMs] = delay;
  return () => source.between(minMs, maxMs);
}

/** Draws from the standard normal distribution using Marsaglia's polar method. */
function standardNormal(source: Random): number {
  for (;;) {
    const x = source.between(-1, 1);
    const y = source.between(-1, 1);
    const square = x * x + y * y;
    if (square > 0 && square < 1) return x * Math.sqrt((-2 * logarithm(square)) / square);
  }
}

// The standard allows Math.log and Math.exp to be approximate but requires exact rounding for +, −, ×, ÷ and the square
// root.

/**
 * Returns the natural logarithm for 0 < x <= 1. Writes x as m / 2^k with m near 1; then ln m = 2 artanh((m − 1) / (m +
 * 1)).
 */
function logarithm(x: number): number {
  let mantissa = x;
  let halvings = 0;
  for (; mantissa < Math.SQRT1_2; halvings++) mantissa *= 2;
  const t = (mantissa - 1) / (mantissa + 1);
  let sum = 0;
  for (let k = 21; k >= 1; k -= 2) sum = sum * t * t + 1 / k;
  return 2 * t * sum - halvings * Math.LN2;
}

/** Computes e^x as (e^(x / 2^k))^(2^k), with x / 2^k small enough for a short series. */
function exponential(x: number): number {
  let small = x;
  let squarings = 0;
  for (; Math.abs(small) > 0.5; squarings++) small /= 2;
  let sum = 1;
  for (let k = 14; k >= 1; k--) sum = 1 + (small / k) * sum;
  for (; squarings > 0; squarings--) sum *= sum;
  return sum;
}

/** Draws a duration from a range. @throws InvariantViolation if the value is not a valid duration */
export function drawn(duration: Duration, source: Random, timer: string): number {
  requireDuration(timer, duration);
  return typeof duration === "number" ? duration : source.between(duration[0], duration[1]);
}
