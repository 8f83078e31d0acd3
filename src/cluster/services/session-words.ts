/**
 * The messages from a member to a program that holds a lock or leadership through it. They are JSON, one object per
 * line.
 */
import { z } from "zod";

/**
 * A reading of the system's monotonic clock in nanoseconds. Both processes can read this clock. A string, since the
 * value may exceed 2^53.
 */
const instant = z.string("digits").regex(/^\d{1,20}$/, "digits");

/**
 * Both fields are null until the grant is first confirmed. `untilMs` is measured from when the member sent the message.
 */
const certainty = { untilMs: z.number().nullable(), monotonicNs: instant.nullable() };

/** The shape of a message. */
export const wordSchema = z.discriminatedUnion("event", [
  /** `monotonicNs`: the current time on the member's clock. */
  z.object({ event: z.literal("waiting"), session: z.string(), monotonicNs: instant }),
  z.object({ event: z.literal("granted"), token: z.number(), ...certainty }),
  z.object({ event: z.literal("certain"), ...certainty }),
  z.object({ event: z.literal("lost") }),
  z.object({ event: z.literal("released") }),
  z.object({ event: z.literal("refused"), code: z.string(), message: z.string() }),
]);

/** A message to the program. */
export type SessionWord = z.infer<typeof wordSchema>;
