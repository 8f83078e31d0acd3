/** A state machine as the checker of histories takes it: what its operations answer when they come one after another. */
import type { Model, ModelCall } from "../../../src/check/linearizability/index.ts";
import { clone } from "../../../src/core/plain.ts";
import { type MachineKind, stateMachines } from "../../../src/protocols/consensus/family/state-machines.ts";

const verbs: Readonly<Record<MachineKind, readonly string[]>> = {
  log: ["append", "read"],
  map: ["get", "put", "delete", "cas"],
  counter: ["add", "get"],
};

/** The input of an operation is its text, its output the result. */
export function machineModel(kind: MachineKind): Model<object> {
  const { empty, apply, isRead } = stateMachines[kind];
  const call: ModelCall<object> = {
    step(state, { input, output }) {
      const next = clone(state);
      const result = apply(next, String(input));
      return output === undefined || output === result ? next : null;
    },
    observes: ({ input, output }) => isRead(String(input)) || output === "no",
  };
  return {
    name: kind,
    about: "a state machine of the replicated logs",
    init: empty(),
    calls: Object.fromEntries(verbs[kind].map((verb) => [verb, call])),
    needsKey: kind === "map",
    show: (state) => JSON.stringify(state),
  };
}
