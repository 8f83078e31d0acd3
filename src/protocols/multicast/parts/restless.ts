/**
 * What is said of a rest is said of the whole: not while a timer runs for which any of its parts is still at work, nor one
 * of those that are named.
 */
import type { Protocol, TimerOf, Vocabulary } from "../../../core/protocol.ts";

export function restless<V extends Vocabulary>(protocol: Protocol<V>, ...timers: TimerOf<V>[]): Protocol<V> {
  const ofParts = protocol.properties.flatMap((property) =>
    property.when === "atRest" ? (property.restless ?? []) : [],
  );
  const all = [...new Set([...ofParts, ...timers])];
  const properties = protocol.properties.map((property) =>
    property.when === "atRest" ? { ...property, restless: all } : property,
  );
  return { ...protocol, properties };
}
