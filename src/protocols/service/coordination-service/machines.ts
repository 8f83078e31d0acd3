/**
 * State machines of the application: deterministic, each defined by name in the same way at every member. A member that has not
 * defined one yet keeps its commands until it does, and so its snapshots hold them.
 */
import type { Answer, Command, Refusal, Result } from "./operations.ts";
import { MAX_OPERATION_BYTES, OWN_NAMES, refuse } from "./operations.ts";
import { type Applying, bytesOf, type Limits, type MachineState, nextRevision, utf8BytesOf } from "./state.ts";
import { enter, lookUp } from "./table.ts";

/** The state is plain data. `apply` leaves it as it is and gives the next one, which rests on nothing but what it is given. */
export interface MachineDefinition {
  init(): unknown;
  apply(state: unknown, command: string): readonly [state: unknown, result: string];
  /** Changes nothing. */
  ask?(state: unknown, question: string): string;
}

/**
 * A machine of Coterie's own, whose name begins as those of members do. It may be as large as there is room for: what it holds is counted
 * with keys and values. So it is not copied: `run` changes it in place, or throws before it does.
 */
export interface BuiltInMachine {
  init(): unknown;
  /** @param room for what it holds beside, in bytes. @returns `change`: what listeners at each replica are told; null: nothing. */
  run(state: unknown, command: string, room: number): { readonly result: string; readonly change: unknown };
  /** Changes nothing. */
  ask(state: unknown, question: string): string;
  /** What it takes in a snapshot, at most. */
  bytesOf(state: unknown): number;
  /** A copy that later commands do not change: it may share what they only replace. */
  copyOf(state: unknown): unknown;
}

type Definition = MachineDefinition | BuiltInMachine;

/** By name. May be filled while the service runs. */
export type MachineDefinitions = Record<string, Definition>;

const definitionOf = (machines: MachineDefinitions, name: string): Definition | null =>
  Object.hasOwn(machines, name) ? (machines[name] as Definition) : null;

const isOwn = (name: string): boolean => name.startsWith(OWN_NAMES);

export function execute(on: Applying, machines: MachineDefinitions, operation: Command): Result {
  const { data, limits } = on;
  const { machine: name, command } = operation;
  const known = lookUp(data.machines, name);
  const count = data.machines.keys.filter((each) => !isOwn(each)).length;
  if (known === null && !isOwn(name) && count >= limits.maxMachines)
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
  if (isBuiltIn(definition)) return runBuiltIn(on, name, machine, definition, command);
  catchUp(machine, definition, limits);
  return machine.pending === null ? { type: "unknown" } : run(machine, definition, command, limits);
}

const isBuiltIn = (definition: Definition): definition is BuiltInMachine => "bytesOf" in definition;

export function builtInOf(machines: MachineDefinitions, name: string): BuiltInMachine | null {
  const definition = definitionOf(machines, name);
  return definition !== null && isBuiltIn(definition) ? definition : null;
}

/** Every member of this release has defined it: nothing is pending. */
function runBuiltIn(
  { data, limits, tell }: Applying,
  name: string,
  machine: MachineState,
  definition: BuiltInMachine,
  command: string,
): Result {
  begin(machine, definition);
  try {
    const { result, change } = definition.run(machine.state, command, limits.maxBytes - data.bytes);
    const bytes = definition.bytesOf(machine.state);
    data.bytes += bytes - machine.bytes;
    machine.bytes = bytes;
    if (change !== null) tell({ type: "machineChanged", machine: name, change });
    return { type: "executed", result };
  } catch (error) {
    return failed(error);
  }
}

const failed = (error: unknown): Refusal =>
  refuse("machine-failed", String(error instanceof Error ? error.message : error).slice(0, 200));

function begin(machine: MachineState, definition: Definition): void {
  if (machine.isDefined) return;
  machine.isDefined = true;
  machine.state = definition.init();
}

/** More are not kept: this member then has no state of the machine until a snapshot of another brings it. */
function keep({ data, limits }: Pick<Applying, "data" | "limits">, machine: MachineState, command: string): void {
  if (machine.pending === null) return;
  const { maxPending, maxMachines, maxMachineBytes } = limits;
  const bytes = bytesOf(command);
  const { keys, values } = data.machines;
  const ofCallers = values.filter((_each, at) => !isOwn(keys[at] as string));
  const held = ofCallers.reduce((sum, each) => sum + each.bytes + each.pendingBytes, bytes);
  const hasRoom = machine.pending.length < maxPending && held <= maxMachines * maxMachineBytes;
  machine.pendingBytes = hasRoom ? machine.pendingBytes + bytes : 0;
  if (hasRoom) machine.pending.push(command);
  else machine.pending = null;
}

/** What came before it was defined here. */
function catchUp(machine: MachineState, definition: MachineDefinition, limits: Limits): void {
  if (machine.pending === null) return;
  begin(machine, definition);
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
    return failed(error);
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
  if (machine !== null && !isBuiltIn(definition)) catchUp(machine, definition, limits);
  if (machine?.pending === null)
    return refuse("unknown-machine", `too much came for ${name} before this member defined it`);
  try {
    return { type: "answered", answer: definition.ask(machine === null ? definition.init() : machine.state, question) };
  } catch (error) {
    return failed(error);
  }
}
