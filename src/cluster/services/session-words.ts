/** What a member and a program that holds something through it say to each other: JSON, one object a line. */
import { z } from "zod";

/** Of a moment that both read from the system's monotonic clock, in nanoseconds; as text, since it may exceed 2^53. */
const instant = z.string("digits").regex(/^\d{1,20}$/, "digits");

const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const MIN_SILENCE_MS = 100;

/** The body of `POST /locks/NAME` and `POST /elections/NAME`. */
export const wishSchema = z.strictObject(
  {
    /** Default: that of `join()`. */
    algorithm: z.string("the name of an algorithm").max(128, "the name of an algorithm").optional(),
    /** Locks only: how long to wait at most. */
    timeoutMs: z
      .int("a whole number of milliseconds")
      .min(0, "a whole number of milliseconds")
      .max(MAX_TIMEOUT_MS, "a whole number of milliseconds below 2^31")
      .optional(),
    /** From the grant on the caller says at least so often that it lives, or is taken for dead. Default: its connection is enough. */
    silenceMs: z
      .int(`a whole number of ${MIN_SILENCE_MS} or more`)
      .min(MIN_SILENCE_MS, `a whole number of ${MIN_SILENCE_MS} or more`)
      .max(MAX_TIMEOUT_MS, "a whole number of milliseconds below 2^31")
      .optional(),
  },
  "an object",
);

/** Both are null where the algorithm has no lease. `untilMs`: from when the member said it. */
const certainty = { untilMs: z.number().nullable(), monotonicNs: instant.nullable() };

export const wordSchema = z.discriminatedUnion("event", [
  /** `monotonicNs`: now, on the member's clock. */
  z.object({ event: z.literal("waiting"), session: z.string(), monotonicNs: instant }),
  z.object({ event: z.literal("granted"), token: z.number().nullable(), ...certainty }),
  z.object({ event: z.literal("certain"), ...certainty }),
  z.object({ event: z.literal("lost") }),
  z.object({ event: z.literal("released") }),
  z.object({ event: z.literal("refused"), code: z.string(), message: z.string() }),
]);

export type SessionWord = z.infer<typeof wordSchema>;

/** A moment on the scale of `performance.now()`, as all processes of the machine know it. */
export const toMonotonicNs = (moment: number): string =>
  String(process.hrtime.bigint() + BigInt(Math.floor((moment - performance.now()) * 1e6)));

/** And back, in this process. */
export const fromMonotonicNs = (ns: string): number =>
  performance.now() + Number(BigInt(ns) - process.hrtime.bigint()) / 1e6;
