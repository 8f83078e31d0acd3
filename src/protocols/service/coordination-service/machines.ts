/**
 * State machines of the application: deterministic, each defined by name in the same way at every member. A member that has not
 * defined one yet keeps its commands until it does, and so its snapshots hold them. It drops none: before that it stops.
 */
import { EnvironmentError, unexpected } from "../../../core/errors.ts";
import type { Answer, Command, Refusal, Result } from "./operations.ts";
import { isOwn, MAX_OPERATION_BYTES, refuse } from "./operations.ts";
import { type Applying, bytesOf, type Data, type MachineState, nextRevision, utf8BytesOf } from "./state.ts";
import { enter, entriesOf, keysOf, lookUp, valuesOf } from "./table.ts";

/** The state is plain data. `apply` leaves it as it is and gives the next one, which rests on nothing but what it is given. */
export interface MachineDefinition {
  init(): unknown;
  apply(state: unknown, command: string): readonly [state: unknown, result: string];
  /** Changes nothing. */
  ask?(state: unknown, question: string): string;
  /**
   * Why the state is no plain data: replicas that go on from a snapshot of it would come to differ. Null: it is.
   * @param checked an earlier state that is: what the two have in common is not looked at again. Undefined: all of it is looked at.
   */
  fault?(state: unknown, checked: unknown): string | null;
}

/**
 * A machine of Coterie's own, whose name begins as those of members do. It may be as large as there is room for: what it holds is counted
 * with keys and values. So it is not copied: `run` changes it in place, or throws before it does.
 */
export interface BuiltInMachine {
  init(): unknown;
  /**
   * @param room for more keys and values, in bytes.
   * @returns `change`: what listeners at each replica are told; null: nothing.
   */
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

/** What a replica has, without a listener. */
type Replicated = Pick<Applying, "data" | "limits">;

export function execute(on: Applying, machines: MachineDefinitions, operation: Command): Result {
  const { data, limits } = on;
  const { machine: name, command } = operation;
  const known = lookUp(data.machines, name);
  const count = keysOf(data.machines).filter((each) => !isOwn(each)).length;
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
    keep(on, name, machine, command);
    return { type: "unknown" };
  }
  if (isBuiltIn(definition)) return runBuiltIn(on, name, machine, definition, command);
  try {
    catchUp(on, machine, definition);
  } catch (error) {
    return failed(error);
  }
  return run(on, machine, definition, command);
}

const isBuiltIn = (definition: Definition): definition is BuiltInMachine => "bytesOf" in definition;

export function builtInOf(machines: MachineDefinitions, name: string): BuiltInMachine | null {
  const definition = definitionOf(machines, name);
  return definition !== null && isBuiltIn(definition) ? definition : null;
}

/** Every member has defined it: nothing is pending. */
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
  machine.state = definition.init();
  machine.isDefined = true;
}

/** Of a command that waits, beside its text: what a string and its place in a list take in memory. */
const COMMAND_BYTES = 32;

/** @throws EnvironmentError if there is no room for more: what is in the log is not lost, and is run once the machine is defined. */
function keep({ data, limits, tell }: Applying, name: string, machine: MachineState, command: string): void {
  const added = COMMAND_BYTES + bytesOf(command);
  machine.pending.push(command);
  machine.pendingBytes += added;
  const bytes = waitingBytes(data);
  const { maxPendingBytes } = limits;
  if (bytes > maxPendingBytes) throw undefinedMachine(name, bytes, `at most ${maxPendingBytes} do`);
  const share = maxPendingBytes / TOLD_SHARES;
  if (Math.floor(bytes / share) > Math.floor((bytes - added) / share))
    tell({ type: "commandsWait", machine: name, bytes, maxBytes: maxPendingBytes });
}

/** How often it is told that commands wait, until no more may. */
const TOLD_SHARES = 8;

/** Of commands whose machines are not defined here. */
export const waitingBytes = ({ machines }: Data): number =>
  valuesOf(machines).reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);

/** The log goes on growing as long as no snapshot is taken. @throws EnvironmentError if one has no room for what waits */
function _requireDefined({ machines }: Data): void {
  const most = valuesOf(machines).reduce((max, { pendingBytes }) => Math.max(max, pendingBytes), 0);
  const name = [...entriesOf(machines)].find(([, machine]) => machine.pendingBytes === most)?.[0];
  if (name !== undefined && most > 0) throw undefinedMachine(name, most, "no snapshot has room for them");
}

function undefinedMachine(name: string, bytes: number, why: string): EnvironmentError {
  return new EnvironmentError(
    "undefined-machine",
    `expected the state machine "${name}" to be defined at this member, and it is not: ${bytes} bytes of commands wait for that here, and ${why}. Nothing is lost: start the member again, and call replicated(${JSON.stringify(name)}, …) in the turn in which join() resolves, at every member`,
  );
}

/** What came before it was defined here. @throws what `init` does; then all of that waits still */
function catchUp({ limits }: Replicated, machine: MachineState, definition: MachineDefinition): void {
  begin(machine, definition);
  if (machine.pending.length === 0) return;
  const commands = machine.pending;
  machine.pending = [];
  machine.pendingBytes = 0;
  for (const command of commands) run({ limits }, machine, definition, command);
}

/** So that snapshots hold states. */
export function catchUpAll(on: Replicated, machines: MachineDefinitions): void {
  for (const [name, machine] of entriesOf(on.data.machines)) {
    const definition = definitionOf(machines, name);
    if (definition === null || isBuiltIn(definition) || machine.pending.length === 0) continue;
    try {
      catchUp(on, machine, definition);
    } catch {} // The next one that asks is told so.
  }
}

/** Whether all states can be saved: one that was changed in place may have come to be what no snapshot holds. */
export function areSound({ machines }: Data, definitions: MachineDefinitions): boolean {
  return [...entriesOf(machines)].every(([name, { state, isDefined }]) => {
    const definition = definitionOf(definitions, name);
    const isLookedAt = isDefined && definition !== null && !isBuiltIn(definition);
    return !isLookedAt || (definition.fault?.(state, undefined) ?? null) === null;
  });
}

/** One that throws has changed nothing, nor has one whose state or result would be too large, or no plain data. */
function run(
  { limits }: Pick<Applying, "limits">,
  machine: MachineState,
  definition: MachineDefinition,
  command: string,
): Result {
  try {
    const [state, result] = definition.apply(machine.state, command);
    if (utf8BytesOf(result) > MAX_OPERATION_BYTES)
      return refuse("too-large", `a result has at most ${MAX_OPERATION_BYTES} bytes`);
    const isMeasured = isDue(machine, limits.maxMachineBytes);
    const bytes = isMeasured ? utf8BytesOf(JSON.stringify(state) ?? "") : 0;
    const checked = isMeasured ? undefined : machine.state;
    const fault = definition.fault?.(state, checked) ?? null;
    if (fault !== null) return failed(fault);
    if (bytes > limits.maxMachineBytes && bytes >= machine.bytes)
      return refuse("too-large", `the state of a machine takes at most ${limits.maxMachineBytes} bytes as JSON`);
    machine.unmeasured = isMeasured ? 0 : machine.unmeasured + 1;
    if (isMeasured) machine.bytes = bytes;
    machine.state = state;
    return { type: "executed", result };
  } catch (error) {
    return failed(error);
  }
}

/** A state that is large is not measured after each command: on average one costs as much as this many bytes. At every replica after the same ones. */
const MEASURED_BYTES = 65_536;

const isDue = ({ bytes, unmeasured }: MachineState, maxMachineBytes: number): boolean =>
  bytes > maxMachineBytes || unmeasured >= Math.floor(bytes / MEASURED_BYTES);

export function ask(on: Replicated, machines: MachineDefinitions, name: string, question: string): Answer {
  const definition = definitionOf(machines, name);
  if (definition?.ask === undefined)
    return refuse("unknown-machine", `this member has not defined a state machine ${name} that can be asked`);
  const machine = lookUp(on.data.machines, name);
  try {
    if (machine !== null && !isBuiltIn(definition)) catchUp(on, machine, definition);
    const answer: unknown = definition.ask(machine === null ? definition.init() : machine.state, question);
    return typeof answer === "string"
      ? { type: "answered", answer }
      : failed(unexpected("the answer", "a text", answer));
  } catch (error) {
    return failed(error);
  }
}
