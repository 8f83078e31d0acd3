/**
 * Systems. A system consists of an algorithm, the parts that it needs, such as a failure detector, and the wires
 * between them. From a system, the registry derives the forms for the checker, for processes and for `join()`.
 */
import { type Assembly, assemble, type Parts } from "../core/assemble.ts";
import { InvariantViolation } from "../core/errors.ts";
import type { Protocol } from "../core/protocol.ts";
import { inPart, requireParts, withFixed } from "./options.ts";

// Parts are looked up by name. Callers specify the types of the parts.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** A function that creates a protocol or a part. Every option is optional, and unknown options are rejected. */
export type AnyMaker = (options?: never) => unknown;

/** For each part and each of its events, a function that gives commands to other parts. */
export type WireTable = Readonly<Record<string, Readonly<Record<string, (event: Any, give: Any) => void>>>>;

/** The parts of a system and the wires between them. */
export interface System {
  /** The parts, in the order they start. */
  readonly parts: Readonly<Record<string, AnyMaker>>;
  readonly wires: WireTable;
  /** The part whose name and view represent the whole system. */
  readonly algorithm: string;
}

/** Returns a function that creates the whole system. Each part's options are given under its name. */
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

/** Merges wire tables. @throws InvariantViolation if two tables have a wire for the same event of the same part. */
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

/** Fixes some options so that callers cannot set them. */
export const settled =
  (make: AnyMaker, settings: object): AnyMaker =>
  (options?: object) =>
    withFixed(Object.keys(settings), () => make({ ...options, ...settings } as never));

/** Changes the defaults of some options. */
export const defaulting =
  (make: AnyMaker, defaults: object): AnyMaker =>
  (options?: object) =>
    make({ ...defaults, ...options } as never);
