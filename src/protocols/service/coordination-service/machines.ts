/**
 * State machines of the application: deterministic, each defined by name in the same way at every member. A member that has not
 * defined one yet keeps its commands until it does, and so its snapshots hold them.
 */
import type { Answer, Command, Result } from "./operations.ts";
import { refuse } from "./operations.ts";
import { type Applying, type Data, type Limits, type MachineState, nextRevision } from "./state.ts";
import { enter, lookUp } from "./table.ts";

/** The state is plain data. `apply` leaves it as it is and gives the next one, which rests on nothing but what it is given. */
export interface MachineDefinition {
  init(): unknown;
  apply(state: unknown, command: string): readonly [state: unknown, result: string];
  /** Changes nothing. */
  ask?(state: unknown, question: string): string;
}

/** By name. May be filled while the service runs. */
export type MachineDefinitions = Record<string, MachineDefinition>;

const definitionOf = (machines: MachineDefinitions, name: string): MachineDefinition | null =>
  Object.hasOwn(machines, name) ? (machines[name] as MachineDefinition) : null;

export function execute({ data, limits }: Applying, machines: MachineDefinitions, operation: Command): Result {
  const { machine: name, command } = operation;
  const known = lookUp(data.machines, name);
  if (known === null && data.machines.keys.length >= limits.maxNames)
    return refuse("too-many", `there are ${limits.maxNames} state machines already`);
  nextRevision(data);
  const machine: MachineState = known ?? { state: null, isDefined: false, pending: [] };
  if (known === null) enter(data.machines, name, machine);
  const definition = definitionOf(machines, name);
  if (definition === null) {
    keep(machine, command, limits);
    return { type: "unknown" };
  }
  catchUp(machine, definition);
  return machine.pending === null ? { type: "unknown" } : run(machine, definition, command);
}

/** More are not kept: this member then has no state of the machine until a snapshot of another brings it. */
function keep(machine: MachineState, command: string, { maxPending }: Limits): void {
  if (machine.pending === null) return;
  if (machine.pending.length >= maxPending) machine.pending = null;
  else machine.pending.push(command);
}

/** What came before it was defined here. */
function catchUp(machine: MachineState, definition: MachineDefinition): void {
  if (machine.pending === null) return;
  if (!machine.isDefined) {
    machine.isDefined = true;
    machine.state = definition.init();
  }
  const { pending } = machine;
  machine.pending = [];
  for (const command of pending) run(machine, definition, command);
}

/** One that throws has changed nothing. */
function run(machine: MachineState, definition: MachineDefinition, command: string): Result {
  try {
    const [state, result] = definition.apply(machine.state, command);
    machine.state = state;
    return { type: "executed", result };
  } catch (error) {
    return refuse("machine-failed", String(error instanceof Error ? error.message : error).slice(0, 200));
  }
}

export function ask(data: Data, machines: MachineDefinitions, name: string, question: string): Answer {
  const definition = definitionOf(machines, name);
  if (definition?.ask === undefined)
    return refuse("unknown-machine", `this member has not defined a state machine ${name} that can be asked`);
  const machine = lookUp(data.machines, name);
  if (machine !== null) catchUp(machine, definition);
  if (machine?.pending === null)
    return refuse("unknown-machine", `too much came for ${name} before this member defined it`);
  try {
    return { type: "answered", answer: definition.ask(machine === null ? definition.init() : machine.state, question) };
  } catch (error) {
    return refuse("machine-failed", String(error instanceof Error ? error.message : error).slice(0, 200));
  }
}
