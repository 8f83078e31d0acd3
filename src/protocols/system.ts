/**
 * One description of a system: an algorithm, the parts that it needs beside it, such as a failure detector, and the wires
 * between them. The registry derives from it what is explored, what a process runs, and what `join()` runs by name.
 */
import { type Assembly, assemble, type Parts } from "../core/assemble.ts";
import { InvariantViolation } from "../core/errors.ts";
import type { Protocol } from "../core/protocol.ts";
import { inPart, requireParts, withFixed } from "./options.ts";

// Parts are looked up by name; naming a system's type bag says what it is.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** Every option that a maker takes is optional, and it refuses what it does not know. */
export type AnyMaker = (options?: never) => unknown;

/** By part and by its event: which commands others are given. */
export type WireTable = Readonly<Record<string, Readonly<Record<string, (event: Any, give: Any) => void>>>>;

export interface System {
  /** In the order in which they start. */
  readonly parts: Readonly<Record<string, AnyMaker>>;
  readonly wires: WireTable;
  /** The part that stands for the whole. */
  readonly algorithm: string;
}

/** The whole system; the options of each part stand under its name. */
export const composed =
  <P extends Parts, O extends object = { [N in keyof P]?: object }>({ parts, wires, algorithm }: System) =>
  (options?: O): Protocol<Assembly<P>> => {
    const given: Any = options ?? {};
    const made: Any = Object.fromEntries(
      Object.entries(parts).map(([of, make]) => [of, inPart(of, () => make(given[of] as never))]),
    );
    const { name } = made[algorithm];
    requireParts(name, given, Object.keys(parts));
    return assemble<P>(name, made, wires as Any, { face: algorithm });
  };

/** The wires of several tables. @throws InvariantViolation if two have one for the same event of the same part. */
export function joined(...tables: readonly WireTable[]): WireTable {
  const whole: Record<string, Record<string, Any>> = {};
  for (const [part, wires] of tables.flatMap((table) => Object.entries(table)))
    for (const [event, wire] of Object.entries(wires ?? {})) {
      whole[part] ??= {};
      if (whole[part][event] !== undefined)
        throw new InvariantViolation("two-wires", `expected one wire for ${event} of ${part}, got two`);
      whole[part][event] = wire;
    }
  return whole;
}

/** The same with options that nobody else may set. */
export const settled =
  (make: AnyMaker, settings: object): AnyMaker =>
  (options?: object) =>
    withFixed(Object.keys(settings), () => make({ ...options, ...settings } as never));

/** The same with other defaults. */
export const defaulting =
  (make: AnyMaker, defaults: object): AnyMaker =>
  (options?: object) =>
    make({ ...defaults, ...options } as never);
