/**
 * State machines of the application: deterministic, each defined by name in the same way at every member. A member that has not
 * defined one yet keeps its commands until it does, and so its snapshots hold them.
 */
import type { Answer, Command, Result } from "./operations.ts";
import { MAX_OPERATION_BYTES, refuse } from "./operations.ts";
import { type Applying, bytesOf, type Limits, type MachineState, nextRevision, utf8BytesOf } from "./state.ts";
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
  if (known === null && data.machines.keys.length >= limits.maxMachines)
    return refuse("too-many", `there are ${limits.maxMachines} state machines already`);
  nextRevision(data);
  const machine: MachineState = known ?? {
    state: null,
    isDefined: false,
    pending: [],
    pendingBytes: 0,
    bytes: 0,
    unmeasured: 0,
  };
  if (known === null) enter(data.machines, name, machine);
  const definition = definitionOf(machines, name);
  if (definition === null) {
    keep({ data, limits }, machine, command);
    return { type: "unknown" };
  }
  catchUp(machine, definition, limits);
  return machine.pending === null ? { type: "unknown" } : run(machine, definition, command, limits);
}

/** More are not kept: this member then has no state of the machine until a snapshot of another brings it. */
function keep({ data, limits }: Pick<Applying, "data" | "limits">, machine: MachineState, command: string): void {
  if (machine.pending === null) return;
  const { maxPending, maxMachines, maxMachineBytes } = limits;
  const bytes = bytesOf(command);
  const held = data.machines.values.reduce((sum, each) => sum + each.bytes + each.pendingBytes, bytes);
  const hasRoom = machine.pending.length < maxPending && held <= maxMachines * maxMachineBytes;
  machine.pendingBytes = hasRoom ? machine.pendingBytes + bytes : 0;
  if (hasRoom) machine.pending.push(command);
  else machine.pending = null;
}

/** What came before it was defined here. */
function catchUp(machine: MachineState, definition: MachineDefinition, limits: Limits): void {
  if (machine.pending === null) return;
  if (!machine.isDefined) {
    machine.isDefined = true;
    machine.state = definition.init();
  }
  const { pending } = machine;
  machine.pending = [];
  machine.pendingBytes = 0;
  for (const command of pending) run(machine, definition, command, limits);
}

/** One that throws has changed nothing, nor has one whose state or result would be too large. */
function run(machine: MachineState, definition: MachineDefinition, command: string, limits: Limits): Result {
  try {
    const [state, result] = definition.apply(machine.state, command);
    if (utf8BytesOf(result) > MAX_OPERATION_BYTES)
      return refuse("too-large", `a result has at most ${MAX_OPERATION_BYTES} bytes`);
    if (!measure(machine, state, limits))
      return refuse("too-large", `the state of a machine takes at most ${limits.maxMachineBytes} bytes as JSON`);
    machine.state = state;
    return { type: "executed", result };
  } catch (error) {
    return refuse("machine-failed", String(error instanceof Error ? error.message : error).slice(0, 200));
  }
}

/** A state that is large is not measured after each command: on average one costs as much as this many bytes. At every replica after the same ones. */
const MEASURED_BYTES = 65_536;

/** @returns whether there is room for it. */
function measure(machine: MachineState, state: unknown, { maxMachineBytes }: Limits): boolean {
  if (machine.bytes <= maxMachineBytes && machine.unmeasured < Math.floor(machine.bytes / MEASURED_BYTES)) {
    machine.unmeasured += 1;
    return true;
  }
  const bytes = utf8BytesOf(JSON.stringify(state) ?? "");
  const isSmaller = bytes < machine.bytes;
  if (bytes > maxMachineBytes && !isSmaller) return false;
  machine.bytes = bytes;
  machine.unmeasured = 0;
  return true;
}

export function ask(
  { data, limits }: Pick<Applying, "data" | "limits">,
  machines: MachineDefinitions,
  name: string,
  question: string,
): Answer {
  const definition = definitionOf(machines, name);
  if (definition?.ask === undefined)
    return refuse("unknown-machine", `this member has not defined a state machine ${name} that can be asked`);
  const machine = lookUp(data.machines, name);
  if (machine !== null) catchUp(machine, definition, limits);
  if (machine?.pending === null)
    return refuse("unknown-machine", `too much came for ${name} before this member defined it`);
  try {
    return { type: "answered", answer: definition.ask(machine === null ? definition.init() : machine.state, question) };
  } catch (error) {
    return refuse("machine-failed", String(error instanceof Error ? error.message : error).slice(0, 200));
  }
}
