/**
 * State machines of the application: deterministic, and defined by name in the same way at every member. A member that
 * has not defined a machine yet keeps its commands until it does, so its snapshots contain them. It never drops a
 * command: it stops instead.
 */
import { EnvironmentError, unexpected } from "../../../core/errors.ts";
import type { Answer, Command, Refusal, Result } from "./operations.ts";
import { isOwn, MAX_OPERATION_BYTES, refuse } from "./operations.ts";
import { type Applying, bytesOf, type Data, type MachineState, nextRevision, utf8BytesOf } from "./state.ts";
import { enter, entriesOf, keysOf, lookUp, valuesOf } from "./table.ts";

/**
 * A state machine with plain data as its state. `apply` does not change its argument: it returns the next state, which
 * depends on the arguments only.
 */
export interface MachineDefinition {
  init(): unknown;
  apply(state: unknown, command: string): readonly [state: unknown, result: string];
  /** Must not change the state. */
  ask?(state: unknown, question: string): string;
  /**
   * @param checked an earlier state that is plain data: parts shared with it are not checked again. Undefined: check
   * everything.
   * @returns why the state is not plain data, so that replicas that restore it from a snapshot would diverge; null if
   * it is.
   */
  fault?(state: unknown, checked: unknown): string | null;
}

/**
 * A built-in machine, with a reserved name. Its size counts as keys and values do, so it may be as large as there is
 * room. Its state is therefore not copied: `run` changes it in place, or throws before any change.
 */
export interface BuiltInMachine {
  init(): unknown;
  /**
   * @param room for more keys and values, in bytes.
   * @returns `change`, which is reported to listeners at each replica; null: nothing to report.
   */
  run(state: unknown, command: string, room: number): { readonly result: string; readonly change: unknown };
  /** Must not change the state. */
  ask(state: unknown, question: string): string;
  /** @returns an upper bound for its size in a snapshot. */
  bytesOf(state: unknown): number;
  /** @returns a copy that later commands do not change. It may share parts that commands replace as a whole. */
  copyOf(state: unknown): unknown;
}

type Definition = MachineDefinition | BuiltInMachine;

/** Definitions by name. May be extended while the service runs. */
export type MachineDefinitions = Record<string, Definition>;

const definitionOf = (machines: MachineDefinitions, name: string): Definition | null =>
  Object.hasOwn(machines, name) ? (machines[name] as Definition) : null;

/** The data of a replica, without listeners. */
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

/** Every member defines built-in machines, so no command is pending. */
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

/** The memory overhead of a pending command, in addition to its text. */
const COMMAND_BYTES = 32;

/**
 * @throws EnvironmentError if another pending command does not fit. It stays in the log and runs once the
 * machine is defined.
 */
function keep({ data, limits, tell }: Applying, name: string, machine: MachineState, command: string): void {
  const added = COMMAND_BYTES + bytesOf(command);
  machine.pending.push(command);
  machine.pendingBytes += added;
  const bytes = waitingBytes(data);
  const { maxPendingBytes } = limits;
  if (bytes > maxPendingBytes) throw undefinedMachine(name, bytes, `at most ${maxPendingBytes} may`);
  const share = maxPendingBytes / TOLD_SHARES;
  if (Math.floor(bytes / share) > Math.floor((bytes - added) / share))
    tell({ type: "commandsWait", machine: name, bytes, maxBytes: maxPendingBytes });
}

/** How many times `commandsWait` is emitted before the limit is reached. */
const TOLD_SHARES = 8;

/** @returns the bytes of commands whose machines are not defined here. */
export const waitingBytes = ({ machines }: Data): number =>
  valuesOf(machines).reduce((sum, { pendingBytes }) => sum + pendingBytes, 0);

function undefinedMachine(name: string, bytes: number, why: string): EnvironmentError {
  return new EnvironmentError(
    "undefined-machine",
    `expected the state machine "${name}" to be defined at this member, but it is not: ${bytes} bytes of commands are waiting for it, and ${why}. No data is lost: restart the member, and call replicated(${JSON.stringify(name)}, …) as soon as join() resolves, at every member`,
  );
}

/**
 * Runs the commands that were decided before the machine was defined here. @throws the error of `init`; the commands
 * then stay pending
 */
function catchUp({ limits }: Replicated, machine: MachineState, definition: MachineDefinition): void {
  begin(machine, definition);
  if (machine.pending.length === 0) return;
  const commands = machine.pending;
  machine.pending = [];
  machine.pendingBytes = 0;
  for (const command of commands) run({ limits }, machine, definition, command);
}

/** Runs pending commands, so that snapshots contain states. */
export function catchUpAll(on: Replicated, machines: MachineDefinitions): void {
  for (const [name, machine] of entriesOf(on.data.machines)) {
    const definition = definitionOf(machines, name);
    if (definition === null || isBuiltIn(definition) || machine.pending.length === 0) continue;
    try {
      catchUp(on, machine, definition);
    } catch {} // The next call reports the error.
  }
}

/** Whether all states can be saved. A state that was changed in place may no longer be plain data. */
export function areSound({ machines }: Data, definitions: MachineDefinitions): boolean {
  return [...entriesOf(machines)].every(([name, { state, isDefined }]) => {
    const definition = definitionOf(definitions, name);
    const isLookedAt = isDefined && definition !== null && !isBuiltIn(definition);
    return !isLookedAt || (definition.fault?.(state, undefined) ?? null) === null;
  });
}

/** Runs a command. It changes nothing if it throws, or if its state or result is too large or not plain data. */
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

/**
 * A large state is not measured after each command. The average cost per command equals measuring this many bytes. All
 * replicas measure after the same commands.
 */
const MEASURED_BYTES = 65_536;

const isDue = ({ bytes, unmeasured }: MachineState, maxMachineBytes: number): boolean =>
  bytes > maxMachineBytes || unmeasured >= Math.floor(bytes / MEASURED_BYTES);

export function ask(on: Replicated, machines: MachineDefinitions, name: string, question: string): Answer {
  const definition = definitionOf(machines, name);
  if (definition?.ask === undefined)
    return refuse("unknown-machine", `expected this member to define a state machine ${name} with a query function`);
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
