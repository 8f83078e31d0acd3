/** The messages from a member to a program that holds something through it: JSON, one object a line. */
import { z } from "zod";

/** A time that both read from the system's monotonic clock, in nanoseconds. A string, since it may exceed 2^53. */
const instant = z.string("digits").regex(/^\d{1,20}$/, "digits");

/** Both are null until the grant is first confirmed. `untilMs` counts from when the member sent it. */
const certainty = { untilMs: z.number().nullable(), monotonicNs: instant.nullable() };

export const wordSchema = z.discriminatedUnion("event", [
  /** `monotonicNs`: the present time on the member's clock. */
  z.object({ event: z.literal("waiting"), session: z.string(), monotonicNs: instant }),
  z.object({ event: z.literal("granted"), token: z.number(), ...certainty }),
  z.object({ event: z.literal("certain"), ...certainty }),
  z.object({ event: z.literal("lost") }),
  z.object({ event: z.literal("released") }),
  z.object({ event: z.literal("refused"), code: z.string(), message: z.string() }),
]);

export type SessionWord = z.infer<typeof wordSchema>;
