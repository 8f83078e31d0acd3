/** A state machine as the checker of histories takes it: what its operations answer when they come one after another. */

import { clone } from "../../../src/core/plain.ts";
import type { Model, ModelCall, Operation } from "../../../src/history/index.ts";
import { type MachineKind, stateMachines } from "../../../src/protocols/consensus/family/machine.ts";

const verbs: Readonly<Record<MachineKind, readonly string[]>> = {
  log: ["append", "read"],
  map: ["get", "put", "delete", "cas"],
  counter: ["add", "get"],
};

/**
 * The input of an operation is its text, its output the result.
 * @param entries what a log holds in the end: where many appends are pending, a search that does not know it takes long.
 */
export function machineModel(kind: MachineKind, entries: readonly string[] = []): Model<object> {
  const { empty, apply, isRead } = stateMachines[kind];
  const call: ModelCall<object> = {
    step(state, { input, output }) {
      const next = clone(state);
      const result = apply(next, input as string);
      return output === undefined || output === result ? next : null;
    },
    observes: ({ input, output }) => isRead(input as string) || output === "no",
  };
  return {
    name: kind,
    about: "a state machine of the replicated logs",
    init: empty(),
    calls: Object.fromEntries(verbs[kind].map((verb) => [verb, call])),
    needsKey: kind === "map",
    ...(kind === "log" ? { foresee: (operations) => inOrderOf(entries, operations) } : {}),
    show: (state) => JSON.stringify(state),
  };
}

/** An append at its place, a read after the last that it saw. What is not there in the end comes last: it may never take effect. */
function inOrderOf(entries: readonly string[], operations: readonly Operation[]): readonly Operation[] {
  const places = new Map(entries.map((text, at) => [text, at]));
  const placeOf = ({ f, input, output }: Operation): number => {
    if (f === "append") return places.get((input as string).slice("append ".length)) ?? entries.length;
    return output === "" ? -1 : (places.get((output as string).split(",").at(-1) ?? "") ?? entries.length) + 0.5;
  };
  return operations.toSorted((a, b) => placeOf(a) - placeOf(b));
}
