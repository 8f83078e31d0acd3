/** Which commands interfere: two that do not, commute, and nodes may apply them in either order. It has to be true of the state machine. */
import type { Command } from "../family/replicated-log.ts";

export const relations = ["all", "by-key", "none"] as const;
/** `by-key`: commands that name the same key, such as those of the map; reads of it do not interfere with each other. */
export type Relation = (typeof relations)[number];

export type Interferes = (a: Command, b: Command) => boolean;

/** Commands of clients count from 1. A checkpoint interferes with everything. */
export const isCheckpoint = ({ sequence }: Command): boolean => sequence === 0;

const words = ({ operation }: Command): string[] => operation.split(" ", 2);

function onSameKey(a: Command, b: Command): boolean {
  const [[ofA, keyA], [ofB, keyB]] = [words(a), words(b)];
  return keyA === keyB && !(ofA === "get" && ofB === "get");
}

const declared: Readonly<Record<Relation, Interferes>> = { all: () => true, "by-key": onSameKey, none: () => false };

export const interference =
  (relation: Relation): Interferes =>
  (a, b) =>
    isCheckpoint(a) || isCheckpoint(b) || declared[relation](a, b);
