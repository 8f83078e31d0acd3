/** Models a state machine for the history checker: the results of operations that are applied one at a time. */

import { clone } from "../../../src/core/plain.ts";
import type { Model, ModelCall, Operation } from "../../../src/history/index.ts";
import { type MachineKind, stateMachines } from "../../../src/protocols/consensus/family/machine.ts";

const verbs: Readonly<Record<MachineKind, readonly string[]>> = {
  log: ["append", "read"],
  map: ["get", "put", "delete", "cas"],
  counter: ["add", "get"],
};

/**
 * Returns the model of a state machine. The input of an operation is its text, and its output is the result.
 * @param entries the final contents of a log. They shorten a search that has many pending appends.
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

/**
 * Orders an append by its position, and a read after the last entry that it saw. Missing entries come last, because
 * they may never take effect.
 */
function inOrderOf(entries: readonly string[], operations: readonly Operation[]): readonly Operation[] {
  const places = new Map(entries.map((text, at) => [text, at]));
  const placeOf = ({ f, input, output }: Operation): number => {
    if (f === "append") return places.get((input as string).slice("append ".length)) ?? entries.length;
    return output === "" ? -1 : (places.get((output as string).split(",").at(-1) ?? "") ?? entries.length) + 0.5;
  };
  return operations.toSorted((a, b) => placeOf(a) - placeOf(b));
}
